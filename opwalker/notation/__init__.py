"""Small languages, text to value and back: op schemas, C++ signatures, shape comments, preprocessor conditions."""
