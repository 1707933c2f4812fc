"""What wrk2, cassandra-stress and HistogramLogProcessor print."""

from __future__ import annotations

from opskit.jvm.logs.hdr.lines import lines_of
from opskit.jvm.logs.hdr.spectrum import Printed, looks_printed

WRK2 = b"""Running 30s test @ http://127.0.0.1:80/index.html
  2 threads and 100 connections
  Thread Stats   Avg      Stdev     Max   +/- Stdev
    Latency     6.60ms    1.92ms  12.50ms   68.46%
  Latency Distribution (HdrHistogram - Recorded Latency)
 50.000%    6.67ms
 75.000%    7.78ms
 90.000%    9.14ms
 99.000%   11.18ms
 99.900%    1.20s
 99.990%   12.45s
100.000%   12.50s

  Detailed Percentile spectrum:
       Value   Percentile   TotalCount 1/(1-Percentile)

       0.921     0.000000            1         1.00
       6.671     0.500000        19800         2.00
   12503.039     1.000000        39500          inf
#[Mean    =        6.602, StdDeviation   =        1.919]
#[Max     =    12496.896, Total count    =        39500]
#[Buckets =           27, SubBuckets     =         2048]
----------------------------------------------------------

  Latency Distribution (HdrHistogram - Uncorrected Latency (measured without taking delayed starts into account))
 50.000%  500.00us

  Detailed Percentile spectrum:
       Value   Percentile   TotalCount 1/(1-Percentile)

       0.300     0.000000            5         1.00
       9.000     1.000000        39500          inf
#[Mean    =        0.602, StdDeviation   =        0.919]
#[Max     =        8.996, Total count    =        39500]
#[Buckets =           27, SubBuckets     =         2048]
  39500 requests in 30.01s, 5.00MB read
"""
STRESS = b"""******************** Stress Settings ********************
type       total ops,    op/s,    pk/s,   row/s,    mean,     med,     .95,     .99,    .999,     max,   time,   stderr
READ,              8123,    8123,    8123,    8123,     0.9,     0.5,     2.4,     8.8,    30.5,    48.6,    1.0,  0.00000
Results:
Op rate                   :   12,345 op/s  [READ: 6,172 op/s, WRITE: 6,173 op/s]
Latency mean              :    0.8 ms [READ: 0.7 ms, WRITE: 0.9 ms]
Latency median            :    0.6 ms [READ: 0.5 ms, WRITE: 0.7 ms]
Latency 95th percentile   :    1.5 ms [READ: 1.4 ms, WRITE: 1.6 ms]
Latency 99th percentile   :    3.0 ms [READ: 2.9 ms, WRITE: 3.1 ms]
Latency 99.9th percentile :   12.1 ms [READ: 11.0 ms, WRITE: 12.2 ms]
Latency max               :   48.6 ms [READ: 40.1 ms, WRITE: 48.6 ms]
Total partitions          :  1,000,000 [READ: 500,100, WRITE: 499,900]
Total operation time      : 00:01:21
"""


def read(data):
    """The histograms of an output."""
    assert looks_printed(data)
    return list(Printed("out").read(lines_of([data])))


def test_wrk2():
    """Both histograms with names, in ms; the percentiles that it names are converted."""
    recorded, uncorrected = read(WRK2)
    assert recorded[2:9] == ("wrk2", "Recorded", "ms", 39500, 12496.896, 6.602, 1.919)
    assert recorded.points == ((0.921, 0.0, 1), (6.671, 0.5, 19800), (12503.039, 1.0, 39500))
    assert recorded.percents[0] == (50.0, 6.67)
    assert recorded.percents[-3:] == ((99.9, 1200.0), (99.99, 12450.0), (100.0, 12500.0))
    assert (uncorrected.name, uncorrected.percents, len(uncorrected.points)) == ("Uncorrected", ((50.0, 0.5),), 2)


def test_hgrm():
    """The table alone: nobody says its unit."""
    (found,) = read(WRK2[WRK2.index(b"       Value") : WRK2.index(b"-----")])
    assert (found.tool, found.name, found.unit, found.total, len(found.points)) == ("hgrm", None, None, 39500, 3)


def test_cassandra_stress():
    """Each kind of operation where there are several, with the time of the run."""
    read_, write = read(STRESS)
    assert read_[2:9] == ("cassandra-stress", "READ", "ms", 500_100, 40.1, 0.7, None)
    assert read_.percents == ((50.0, 0.5), (95.0, 1.4), (99.0, 2.9), (99.9, 11.0))
    assert (write.name, write.total, write.seconds) == ("WRITE", 499_900, 81.0)


def test_cassandra_stress_of_one_kind():
    """It names the kind once."""
    text = STRESS.replace(b"READ: 0.7 ms, ", b"")
    import re

    (found,) = read(re.sub(rb"READ: [0-9.,]+( ms| op/s)?, ", b"", text))
    assert (found.name, found.total, found.mean) == ("WRITE", 1_000_000, 0.8)


def test_an_output_that_ends_early():
    """A table without its foot is not shown: nobody knows how much is missing."""
    assert read(WRK2[: WRK2.index(b"#[Mean")]) == []
