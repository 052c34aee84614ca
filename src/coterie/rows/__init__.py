"""From what a user passes to the rows of learners.

`tables`, `ids` and `numbers` check what was passed, `wild` sets aside rows with a cell far from all others,
and `learners` is the record of all rows that everything else works on.
"""
