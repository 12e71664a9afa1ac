"""Sessions: conversations, answers with their evidence, what people say of them, and what is made of that."""
