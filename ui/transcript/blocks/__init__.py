"""The visible pieces of a row. Each lays itself out to a width, paints itself, and knows its text."""
