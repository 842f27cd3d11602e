// There is no such layer.
