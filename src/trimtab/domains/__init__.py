"""Convex sets that limit the parameters; see `trimtab.domains.base`."""

from trimtab.domains.ball import Ball
from trimtab.domains.base import Domain
from trimtab.domains.box import Box
from trimtab.domains.everywhere import Everywhere
from trimtab.domains.halfspace import Halfspace
from trimtab.domains.intersection import Intersection
from trimtab.domains.polytope import Polytope
from trimtab.domains.product import Product
from trimtab.domains.simplex import Simplex

__all__ = ["Ball", "Box", "Domain", "Everywhere", "Halfspace", "Intersection", "Polytope", "Product", "Simplex"]
