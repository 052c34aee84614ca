"""What the library answers on the draws and tables of all benchmarks, in rows of one form.

A *source* is a module of this folder: ``orders(source)`` gives out what it can be asked, ``answers(order)``
the rows of one order. Nothing here compares: that is ``benchmarks/against.py``.
"""
