"""Sessions of several queries: ordered queries for a topic on a system, each with its ranking.

blocks      sessions as a reader yields them
judging     comparison of sessions with the judgements
judged      the sparse judged view
settings    options: bases, depth, short lists, duplicates
slots       the positions of documents in a session's vector
vectors     cumulated vectors and their ideals
figures     one figure of each session
grammar     the names of session measures
lists       a session or a query as one ranking, for the measures of runs
analyses    curves and tables
designs     sessions of several systems, prepared for a test
"""
