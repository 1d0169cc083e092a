"""The warning class of advice on a tuner or a study."""

from __future__ import annotations


class AdviceWarning(UserWarning):
    """Advice on a tuner or a study, which runs all the same; each kind is warned of once.

    >>> import warnings
    >>> import trimtab as tt
    >>> warnings.filterwarnings("ignore", category=tt.AdviceWarning)  # for those who look at the dashboard
    >>> warnings.filters.pop(0)[0]
    'ignore'
    """
