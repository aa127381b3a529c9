"""PyTerrier: experiments whose runs are on a leaderboard, with the values of both side by side.

    import pyterrier as pt
    import evalhub_client.pyterrier as eh

    eh.Experiment([bm25, bm25 >> mono], topics, qrels, ["map"], names=["BM25", "mono"], collection="robust04")
    eh.publish("experiments/robust04", collection="robust04")       # what pt.Experiment(save_dir=...) has written
    pipeline = bm25 >> mono >> eh.Submit("robust04", tag="mono")    # sent by eh.flush()
    pt.get_dataset("evalhub:robust04").get_topics()

Written for PyTerrier 1.0 and later.
"""

from .datasets import CollectionDataset, CollectionDatasets
from .experiment import Experiment, publish
from .stage import Published, Submit, flush

__all__ = [
    "CollectionDataset",
    "CollectionDatasets",
    "Experiment",
    "Published",
    "Submit",
    "flush",
    "publish",
]
