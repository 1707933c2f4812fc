"""Codes of the Itanium C++ ABI's mangled names."""

BUILTIN = {
    "v": "void", "w": "wchar_t", "b": "bool", "c": "char", "a": "signed char", "h": "unsigned char", "s": "short",
    "t": "unsigned short", "i": "int", "j": "unsigned int", "l": "long", "m": "unsigned long", "x": "long long",
    "y": "unsigned long long", "n": "__int128", "o": "unsigned __int128", "f": "float", "d": "double", "e": "long double",
    "g": "__float128", "z": "...",
}  # fmt: skip
BUILTIN_D = {
    "d": "decimal64", "e": "decimal128", "f": "decimal32", "h": "half", "i": "char32_t", "s": "char16_t", "u": "char8_t",
    "a": "auto", "c": "decltype(auto)", "n": "decltype(nullptr)",
}  # fmt: skip
STANDARD = {
    "t": "std", "a": "std::allocator", "b": "std::basic_string", "s": "std::basic_string", "i": "std::basic_istream",
    "o": "std::basic_ostream", "d": "std::basic_iostream",
}  # fmt: skip
OPERATORS = {
    "nw": " new", "na": " new[]", "dl": " delete", "da": " delete[]", "aw": " co_await", "ps": "+", "ng": "-", "ad": "&", "de": "*",
    "co": "~", "pl": "+", "mi": "-", "ml": "*", "dv": "/", "rm": "%", "an": "&", "or": "|", "eo": "^", "aS": "=", "pL": "+=",
    "mI": "-=", "mL": "*=", "dV": "/=", "rM": "%=", "aN": "&=", "oR": "|=", "eO": "^=", "ls": "<<", "rs": ">>", "lS": "<<=",
    "rS": ">>=", "eq": "==", "ne": "!=", "lt": "<", "gt": ">", "le": "<=", "ge": ">=", "ss": "<=>", "nt": "!", "aa": "&&",
    "oo": "||", "pp": "++", "mm": "--", "cm": ",", "pm": "->*", "pt": "->", "cl": "()", "ix": "[]", "qu": "?",
}  # fmt: skip
SPECIAL = {
    "TV": "vtable for ", "TT": "VTT for ", "TI": "typeinfo for ", "TS": "typeinfo name for ",
    "TH": "TLS init function for ", "TW": "TLS wrapper function for ", "GV": "guard variable for ",
    "GA": "hidden alias for ", "GTt": "transaction clone for ", "GTn": "non-transaction clone for ",
}  # fmt: skip
POINTERS = {"P": "*", "R": "&", "O": "&&", "C": " _Complex", "G": " _Imaginary"}
QUALIFIERS = {"K": " const", "V": " volatile", "r": " restrict"}
# Of expressions. These take one type: sizeof, alignof, typeid.
OF_TYPE = frozenset(("st", "at", "ti"))
UNARY = frozenset(("ps", "ng", "ad", "de", "co", "nt", "sz", "az", "te", "tw", "nx", "sp", "aw", "pp", "mm"))
BINARY = frozenset(
    ("pl", "mi", "ml", "dv", "rm", "an", "or", "eo", "aS", "pL", "mI", "mL", "dV", "rM", "aN", "oR", "eO", "ls", "rs", "lS",
     "rS", "eq", "ne", "lt", "gt", "le", "ge", "ss", "aa", "oo", "cm", "pm", "ix", "ds")
)  # fmt: skip
CASTS = frozenset(("dc", "sc", "cc", "rc"))
