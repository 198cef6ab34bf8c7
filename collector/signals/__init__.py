"""Engines' and hosts' own metrics under names that do not depend on who emits them."""
