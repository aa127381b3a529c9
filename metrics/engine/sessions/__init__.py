"""Sessions of several queries: a searcher's ordered queries for one topic with one system, each
with its ranking.

blocks       what a reader yields          judging     sessions meet the judgements
judged       the sparse judged view        settings    what may be chosen: bases, depth, short lists, duplicates
slots        where documents stand         vectors     cumulated vectors and their ideals
figures      one figure a session          grammar     the names of session measures
lists        a session or a query as one ranking, for the measures of runs
analyses     curves and tables             designs     sessions of several systems made ready for a test
"""
