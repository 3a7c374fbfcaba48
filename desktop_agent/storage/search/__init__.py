"""The search in all conversations: an index beside the database, which can be deleted and is then made again."""
