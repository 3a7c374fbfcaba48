"""Google's Gemini API: generateContent."""

from desktop_agent.providers.dialects.gemini.adapter import Gemini

__all__ = ["Gemini"]
