"""Where may we be?  Convex sets to project onto; see `trimtab.domains.sets`."""

from trimtab.domains.intersection import Intersection
from trimtab.domains.polytope import Polytope
from trimtab.domains.product import Product
from trimtab.domains.sets import Ball, Box, Domain, Everywhere, Halfspace, Simplex
from trimtab.registry import part

__all__ = ["Ball", "Box", "Domain", "Everywhere", "Halfspace", "Intersection", "Polytope", "Product", "Simplex"]

for _set in (Ball, Box, Everywhere, Halfspace, Intersection, Polytope, Product, Simplex):
    part(_set)
