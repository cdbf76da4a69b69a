"""How fast is what was built, on which device, and is it slower than before?"""
