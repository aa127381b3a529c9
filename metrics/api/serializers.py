"""The shape of a run's name for serializers that are still written by hand."""

from metrics.api.answers import RunName
from runs.api.shapes import shape

RunNameSerializer = shape(RunName)
