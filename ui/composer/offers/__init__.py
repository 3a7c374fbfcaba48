"""What servers of tools offer for a message: resources and ready prompts."""
