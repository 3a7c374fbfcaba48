"""What a person does with what stands in a conversation: looks at pictures, loads them, saves code and pictures."""
