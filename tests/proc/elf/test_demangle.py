"""Short names of C++ and Rust functions, compared with binutils' c++filt."""

from __future__ import annotations

import random
import re
import subprocess
import sys
import time

import jvms
import nativeprograms
import pytest

from opskit.proc.elf.demangle import demangle

# What has brackets that are no template arguments or parameters.
_KEPT = [
    "operator<=>", "operator->*", "operator->", "operator<<=", "operator>>=", "operator<<", "operator>>", "operator<=",
    "operator>=", "operator<", "operator>", "(anonymous namespace)", "operator()", "decltype(nullptr)", "decltype(auto)",
]  # fmt: skip


def shortened(name):
    """A name of c++filt without parameters, template arguments, and what is said of clones and ABIs."""
    name = re.sub(r" \[clone [^\]]*\]|\[abi:[^\]]*\]", "", name)
    for number, kept in enumerate(_KEPT):
        name = name.replace(kept, chr(0xE000 + number))
    angles = parentheses = 0
    found = ""
    for at, letter in enumerate(name):
        if letter == "<":
            angles += 1
        elif letter == ">" and name[at - 1] != "-":
            angles -= 1
        elif letter in "()" and not angles:
            parentheses += 1 if letter == "(" else -1
        elif not angles and not parentheses:
            found += letter
    found = re.sub(r"(?<=\S) (?:const|volatile|&&?)(?=::|$| )", "", found).replace(" ::", "::").strip()
    for number, kept in enumerate(_KEPT):
        found = found.replace(chr(0xE000 + number), kept)
    return found


def symbols_of(path):
    """The mangled names of all functions."""
    text = nativeprograms.run("nm", "--defined-only", path) + nativeprograms.run("nm", "-D", "--defined-only", path)
    words = [line.split() for line in text.splitlines()]
    return sorted(
        {each[2].partition("@")[0] for each in words if len(each) == 3 and each[1] in "tTwWiu" and each[2].startswith("_Z")}
    )  # fmt: skip


def differences(names):
    """The names that are not as c++filt has them."""
    filtered = subprocess.run(
        [nativeprograms.tool("c++filt"), "-p"], input="\n".join(names), check=True, capture_output=True, text=True
    ).stdout.splitlines()
    assert len(filtered) == len(names)
    return [each for each in zip(names, map(demangle, names), map(shortened, filtered)) if each[1] != each[2]]


def test_libjvm_has_the_names_of_cxxfilt():
    """A third of the 50,000 names of HotSpot."""
    names = symbols_of(jvms.java(21).replace("bin/java", "lib/server/libjvm.so"))[::3]
    assert len(names) > 13_000
    assert len(differences(names)) < len(names) / 200


def test_the_cxx_library_has_the_names_of_cxxfilt(tmp_path):
    """libstdc++: templates, operators, thunks, lambdas, local classes."""
    program = nativeprograms.build("stacks.cpp", tmp_path / "stacks", "-O1")
    linked = re.search(r"libstdc\+\+\.so\.6 => (\S+)", nativeprograms.run("ldd", program))
    names = symbols_of(program) + (symbols_of(linked[1]) if linked else [])
    assert len(names) > 300
    assert len(differences(names)) <= len(names) / 200


@pytest.mark.parametrize(
    ("raw", "short"),
    [
        ("write", "write"),
        ("JVM_handle_linux_signal", "JVM_handle_linux_signal"),
        ("_ZN5Parse7do_callEv", "Parse::do_call"),
        ("_ZN20G1ParScanThreadState10trim_queueEv.part.0", "G1ParScanThreadState::trim_queue"),
        ("_ZN3FooC2Ei", "Foo::Foo"),
        ("_ZN3FooD0Ev", "Foo::~Foo"),
        ("_ZNK3FoocvbEv", "Foo::operator bool"),
        ("_ZN3FoolsIiEEvT_", "Foo::operator<<"),
        ("_ZN12_GLOBAL__N_13fooEi", "(anonymous namespace)::foo"),
        ("_ZZN3Foo3barEiENKUlP1AE0_clES0_", "Foo::bar::{lambda#2}::operator()"),
        ("_ZNSt6vectorIiSaIiEE9push_backERKi", "std::vector::push_back"),
        ("_ZN1AB5cxx113fooB5cxx11Ev", "A::foo"),
        ("_ZThn16_N3Foo3barEv", "non-virtual thunk to Foo::bar"),
        ("_ZN9SpinYield3runI8CallableEEvRT_.cold", "SpinYield::run"),
        ("scan.isra.0.cold", "scan"),
        ("parse.constprop.12.lto_priv.3", "parse"),
        # Rust: legacy and v0, by rustc 1.95
        ("_ZN4core3fmt9Formatter3pad17h0123456789abcdefE", "core::fmt::Formatter::pad"),
        (
            "_ZN47_$LT$std..fs..File$u20$as$u20$std..io..Read$GT$4read17h0123456789abcdefE",
            "<std::fs::File as std::io::Read>::read",
        ),
        (
            "_ZN4core3ptr42drop_in_place$LT$std..io..error..Error$GT$17hd292a51e8404f469E.llvm.2168304992561766937",
            "core::ptr::drop_in_place",
        ),
        ("_RNvNtCs1234_7mycrate3foo3bar", "mycrate::foo::bar"),
        ("_RNvMs0_NtNtNtCsjrHSEGnQ3l9_3std3sys6thread4unixNtB5_6Thread3new", "<std::sys::thread::unix::Thread>::new"),
        (
            "_RNvXNtNtNtCsgEmfK2I1SDS_4core3fmt3num3imphNtB6_7Display3fmt",
            "<u8 as core::fmt::Display>::fmt",
        ),
        (
            "_RNCNvMsi_NtNtNtCsjrHSEGnQ3l9_3std3sys2fs4unixNtB7_4File4open0Bd_",
            "<std::sys::fs::unix::File>::open::{closure#0}",
        ),
        # Go's names have dots and slashes of their own
        ("crypto/sha256.(*digest).Write", "crypto/sha256.(*digest).Write"),
        ("main.work.func1", "main.work.func1"),
        # not mangled, or cut
        ("_Z", "_Z"),
        ("_ZN3Foo", "_ZN3Foo"),
        ("_Zebra", "_Zebra"),
        ("_R", "_R"),
        ("_Recover", "_Recover"),
        ("_ZN99999999999999999999fooE", "_ZN99999999999999999999fooE"),
        ("_ZNS_3fooE", "_ZNS_3fooE"),
        ("", ""),
        (".", "."),
    ],
)
def test_a_name(raw, short):
    """Class and function without parameters, template arguments, hashes and the suffixes of clones; otherwise the raw name."""
    assert demangle(raw) == short


def test_rust_programs_have_the_names_of_cxxfilt(tmp_path):
    """Both schemes, where rustc is installed."""
    source = tmp_path / "main.rs"
    source.write_text(
        "use std::collections::HashMap; trait Area { fn area(&self) -> f64; } struct Square(f64);\n"
        "impl Area for Square { fn area(&self) -> f64 { self.0 } }\n"
        "fn main() { let all: Vec<Box<dyn Area>> = vec![Box::new(Square(1.0))]; let mut m = HashMap::new();\n"
        'for i in 0..9u64 { m.insert(i, all[0].area()); } println!("{:?}", m); }\n'
    )
    for scheme in ("legacy", "v0"):
        program = tmp_path / scheme
        options = [] if scheme == "legacy" else ["-C", "symbol-mangling-version=v0"]
        nativeprograms.run("rustc", *options, "-o", program, source)
        text = nativeprograms.run("nm", program)
        names = sorted({name for name in text.split() if re.match(r"_R[A-Z]|_ZN.*17h[0-9a-f]{16}E", name)})
        assert len(names) > 300
        raw = [name for name in names if demangle(name) == name]
        hashed = [name for name in names if re.search(r"h[0-9a-f]{16}|[<$]LT|\[", demangle(name).replace("[u8]", ""))]
        assert len(raw) < len(names) / 200, raw[:5]
        assert len(hashed) < len(names) / 50, [demangle(name) for name in hashed[:5]]


HOSTILE = {
    "pointers to pointers": "_ZN1AcvPPEv".replace("PP", "P" * 4000),
    "nested names": "_Z" + "N1a" * 2000,
    "doubling substitutions": "_Z1aIFivE" + "FS_S_E" * 800,
    "doubling in an operator": "_ZN1Acv" + "F" * 70 + "S_S_E" * 70 + "Ev",
    "templates in templates": "_Z1a" + "I1b" * 2000,
    "lambdas": "_Z" + "ZN1aE" * 1500,
    "expressions": "_Z1aIX" + "pl" * 3000,
    "references back to references": "_R" + "INvC1a1b" * 700 + "B_" * 700,
    "a rust type that doubles": "_RINvC1a1bT" + "TB9_B9_E" * 400,
    "escapes": "_ZN4000" + "$LT$" * 1000 + "17h0123456789abcdefE",
    "clones": "a" + ".1" * 4000,
    "digits": "_Z" + "9" * 8000,
    "a long path": "_ZN" + "1a" * 4000 + "E",
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names_take_no_time(name):
    """Bounded depth, bounded length, no exception: half a second of CPU at most."""
    begin = time.process_time()
    assert len(demangle(HOSTILE[name])) <= 8192
    assert time.process_time() - begin < 0.5


def test_damaged_names_raise_nothing():
    """Each of 20,000 names with random characters gives some name."""
    choose = random.Random(7)  # noqa: S311
    names = [raw for raw in HOSTILE.values() if len(raw) < 100]
    names += [
        "_ZZN3Foo3barEiENKUlP1AE0_clES0_", "_ZNSt6vectorIiSaIiEE9push_backERKi", "_ZTCN1AE0_1B", "_ZN1AIXadL_Z1bvEEE1cEv",
        "_RNvXsd_NtNtNtCsgEmfK2I1SDS_4core3fmt3num3impyNtB9_7Display3fmt", "_RINvNtCs1_4core3ptr4dropDNtC1a1bEL_EB1_",
        "_ZNKSt15__exception_ptr13exception_ptrcvMS0_FvvEEv", "_Z1fIJiA3_KcEEvDpT_", "_ZDC1a1bE", "_ZN1aUt0_1bE",
    ]  # fmt: skip
    letters = "_ZNERSTIXLJFAMDPOKVCUQBGWlcvtsp0123456789abxyz.$"
    for _ in range(20_000):
        name = list(choose.choice(names))
        for _ in range(choose.randint(1, 4)):
            name[choose.randrange(len(name))] = choose.choice(letters)
        text = "".join(name)
        assert isinstance(demangle(text[: choose.randint(1, len(text))]), str)


def test_names_are_parsed_at_any_depth_of_the_stack():
    """Parsing uses less than half of Python's recursion limit."""
    deep = "_ZN1Acv" + "P" * 79 + "iEv"

    def below(levels):
        return demangle(deep) if not levels else below(levels - 1)

    assert below(max(1, sys.getrecursionlimit() // 2 - 150))
