"""The warning class of advice on a tuner or a study."""

from __future__ import annotations


class AdviceWarning(UserWarning):
    """Advice on a running tuner or study; each kind of advice is issued once.

    >>> import warnings
    >>> import trimtab as tt
    >>> warnings.filterwarnings("ignore", category=tt.AdviceWarning)  # if you watch the dashboard
    >>> warnings.filters.pop(0)[0]
    'ignore'
    """
