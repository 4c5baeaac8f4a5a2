"""Tests; they mirror the code."""
