"""What a server offers, in words of ours: tools and what they answer, resources, prompts."""
