"""Gradient estimators: ĝ_t from the values of a round and a memory of earlier ones.

Reference: Zhang, Zhou, Ji, Zavlanos, "Boosting One-Point Derivative-Free Online Optimization via Residual
Feedback", arXiv 2010.07378.
"""

from trimtab.estimators.covariance import Covariance
from trimtab.estimators.high_pass import HighPass
from trimtab.estimators.one_point import OnePoint
from trimtab.estimators.plane import Plane
from trimtab.estimators.residual import Residual
from trimtab.estimators.still import Still
from trimtab.estimators.two_point import ModifiedTwoPoint, TwoPoint

__all__ = ["Covariance", "HighPass", "ModifiedTwoPoint", "OnePoint", "Plane", "Residual", "Still", "TwoPoint"]
