"""/proc/vmstat."""

from __future__ import annotations

import pytest

from opskit.errors import BadInput
from opskit.proc.files.vmstat import page_size, parse_vmstat


def test_vmstat():
    """Names and numbers; anything else is refused with its line."""
    assert parse_vmstat("drop_pagecache 1\ndrop_slab 2\nnr_x -1\n") == {"drop_pagecache": 1, "drop_slab": 2, "nr_x": -1}
    with pytest.raises(BadInput, match="vmstat:2"):
        parse_vmstat("drop_slab 2\ndrop")


@pytest.mark.parametrize("page", [4096, 16384, 65536])
def test_the_page_size_of_another_machine(page):
    """Bytes in meminfo divided by pages in vmstat, which were read a moment later."""
    assert page_size({"nr_slab_reclaimable": 250_700}, {"SReclaimable": 250_000 * page}, 1) == page
    assert page_size({"nr_free_pages": 10_000}, {"MemFree": 10_000 * page}, 1) == page
    assert page_size({}, {}, 4096) == 4096
    # Files of two machines or two days have no common page size.
    assert page_size({"nr_slab_reclaimable": 170_000}, {"SReclaimable": 250_000 * page}, 4096) == 4096
