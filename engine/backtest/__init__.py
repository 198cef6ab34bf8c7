"""What alerts would have said of a time that is past: `minutes` counts verdicts by minute,
`firing` judges burn alerts on them.
"""
