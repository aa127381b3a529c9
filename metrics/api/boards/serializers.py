"""The shape of a caution for serializers that are still written by hand."""

from metrics.api.answers import Caution
from runs.api.shapes import shape

CautionSerializer = shape(Caution)
