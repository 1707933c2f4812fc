"""Short names of C++ functions: of a mangled name the class and the function, without parameters and template arguments.

Itanium C++ ABI, section 5.1 (External Names). Types are parsed all the same: later parts of a name count and repeat them.
"""

from __future__ import annotations

from opskit.proc.elf.itanium_expressions import expression, literal
from opskit.proc.elf.itanium_tables import BUILTIN, BUILTIN_D, OPERATORS, POINTERS, QUALIFIERS, SPECIAL, STANDARD
from opskit.proc.elf.mangled_text import DIGITS, MangledText, NotMangled

_ANONYMOUS = "_GLOBAL__N"


class Itanium(MangledText):
    """A mangled name while it is parsed. What cannot be parsed raises NotMangled."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.known: list[str] = []  # what S_, S0_, … stand for
        self.arguments: list[str] = []  # what T_, T0_, … stand for

    def encoding(self) -> str:
        """A function or a variable, or what the compiler made for one."""
        with self:
            if self.peek() in "TG" and self.peek():
                return self._special()
            return self.name()

    def whole_function(self) -> str:
        """A function with its parameters, up to the E that ends it."""
        found = self.encoding()
        while not self.take("E"):
            self.type()
        return found

    def _special(self) -> str:
        for code, text in SPECIAL.items():
            if self.take(code):
                return text + (self.type() if code in ("TV", "TT", "TI", "TS") else self.encoding())
        if self.take("Th") or self.take("Tv"):
            is_virtual = self.text[self.at - 1] == "v"
            for _ in range(1 + is_virtual):
                self._offset()
            return ("virtual thunk to " if is_virtual else "non-virtual thunk to ") + self.encoding()
        if self.take("Tc"):
            for _ in range(2):
                kind = self.next()
                for _ in range(1 + (kind == "v")):
                    self._offset()
            return "covariant return thunk to " + self.encoding()
        if self.take("TC"):
            derived = self.type()
            self.number()
            self.expect("_")
            return f"construction vtable for {self.type()}-in-{derived}"
        if self.take("GR"):
            return "reference temporary #0 for " + self.name()
        raise NotMangled

    def _offset(self) -> None:
        self.take("n")
        self.number()
        self.expect("_")

    def name(self) -> str:
        """A name with its scopes."""
        with self:
            if self.take("N"):
                return self._nested()
            if self.take("Z"):
                return self._local()
            if self.peek() == "S" and not self.text.startswith("St", self.at):
                found, is_new = self._substitution(), False
            else:
                found, is_new = ("std::" if self.take("St") else "") + self._unqualified(""), True
            if self.peek() == "I":
                if is_new:
                    self.know(found)
                self.template_arguments()
            return found

    def _nested(self) -> str:
        while self.peek() and self.peek() in "rVKRO":
            self.at += 1
        prefix, is_new = "", False
        while not self.take("E"):
            if is_new:
                self.know(prefix)
            is_new = True
            following = self.text[self.at : self.at + 2]
            if following[:1] == "I":
                self.template_arguments()
            elif following[:1] == "S":
                if prefix:
                    raise NotMangled
                prefix, is_new = self._substitution(), False
            elif following[:1] == "T":
                prefix = self._template_parameter()
            elif following in ("Dt", "DT"):
                prefix = self.type()
                is_new = False
            elif following[:1] == "M":
                self.at += 1
                is_new = False
            else:
                last = self._unqualified(prefix)
                prefix = f"{prefix}::{last}" if prefix else last
        if not prefix:
            raise NotMangled
        return prefix

    def _local(self) -> str:
        function = self.whole_function()
        if self.take("s"):
            self._discriminator()
            return function + "::string literal"
        if self.take("d"):
            if self.peek() != "_":
                self.number()
            self.expect("_")
        entity = self.name()
        self._discriminator()
        return f"{function}::{entity}"

    def _discriminator(self) -> None:
        if self.take("__"):
            self.number()
            self.expect("_")
        elif self.take("_"):
            self.next()

    def _unqualified(self, scope: str) -> str:
        """One component: a source name, an operator, a constructor of the scope, a lambda."""
        while self.take("W"):  # C++20 modules
            self.take("P")
            self._source_name()
        self.take("F")  # a friend in a class
        self.take("L")
        first, two = self.peek(), self.text[self.at : self.at + 2]
        if first in DIGITS:
            found = self._source_name()
        elif two in ("Ul", "Ut"):
            found = self._unnamed(two)
        elif first == "C" or (first == "D" and two[1:] in tuple("01245")):
            self.at += 1
            if self.take("I"):
                self.at += 1
                self.type()
            else:
                self.at += 1
            found = ("~" if first == "D" else "") + scope.rpartition("::")[2]
        elif two == "DC":
            self.at += 2
            names = []
            while not self.take("E"):
                names.append(self._source_name())
            found = f"[{', '.join(names)}]"
        else:
            found = self._operator(two)
        while self.take("B"):  # ABI tags
            self._source_name()
        return found

    def _operator(self, two: str) -> str:
        self.at += 2
        if two in OPERATORS:
            return "operator" + OPERATORS[two]
        if two == "cv":
            return "operator " + self.type()
        if two == "li":
            return 'operator"" ' + self._source_name()
        if two[:1] == "v" and two[1:] in DIGITS:
            return "operator " + self._source_name()
        raise NotMangled

    def _unnamed(self, two: str) -> str:
        self.at += 2
        if two == "Ul":
            with self:
                while not self.take("E"):
                    self._parameter_declarations()
                    self.type()
        number = 1 if self.peek() == "_" else self.number() + 2
        self.expect("_")
        return f"{{{'lambda' if two == 'Ul' else 'unnamed type'}#{number}}}"

    def _source_name(self) -> str:
        found = self.take_many(self.number())
        return "(anonymous namespace)" if found.startswith(_ANONYMOUS) else found

    def know(self, found: str) -> str:
        """Keep it for later substitutions."""
        if len(found) > self.longest:
            raise NotMangled
        self.known.append(found)
        return found

    def _substitution(self) -> str:
        self.expect("S")
        first = self.peek()
        if first in STANDARD and first:
            self.at += 1
            return STANDARD[first]
        return self._counted(self.known, 36)

    def _template_parameter(self) -> str:
        self.expect("T")
        if self.take("L"):  # of an outer template
            self.number()
            self.expect("_")
        begin = self.at
        try:
            return self._counted(self.arguments, 10)
        except IndexError:
            self.at = self.text.index("_", begin) + 1
            return "auto"  # of a generic lambda

    def _counted(self, values: list[str], base: int) -> str:
        """_ is the first value, 0_ the second."""
        end = self.text.find("_", self.at, self.at + 6)
        digits = self.text[self.at : end]
        if end < 0 or not (digits.isalnum() or not digits) or not digits.isascii():
            raise NotMangled
        try:
            number = int(digits, base) + 1 if digits else 0  # a number: five digits at most
        except ValueError:
            raise NotMangled from None
        self.at = end + 1
        return values[number]

    def template_arguments(self) -> None:
        """Parse them; T_ means the first of them from now on."""
        with self:
            self.expect("I")
            found = []
            while not self.take("E"):
                if self.take("Q"):
                    expression(self)
                else:
                    found.append(self._template_argument())
            self.arguments = found

    def _template_argument(self) -> str:
        with self:
            self._parameter_declarations()
            if self.take("X"):
                expression(self)
                self.expect("E")
            elif self.take("J"):
                while not self.take("E"):
                    self._template_argument()
            elif self.peek() == "L":
                literal(self)
            else:
                return self.type()
            return ""

    def _parameter_declarations(self) -> None:
        """Of a lambda's or a template template argument's own template: Ty, Tn type, Tk name, Tp."""
        while self.text[self.at : self.at + 2] in ("Ty", "Tn", "Tk", "Tp", "Tt"):
            kind = self.text[self.at + 1]
            self.at += 2
            if kind == "n":
                self.type()
            elif kind == "k":
                self.name()
            elif kind == "t":
                while not self.take("E"):
                    self._parameter_declarations()

    def type(self) -> str:
        """A type, without template arguments."""
        with self:
            first = self.next()
            if first in BUILTIN:
                return BUILTIN[first]
            if first == "D":
                return self._type_d()
            if first == "S" and not self.take("t"):
                self.at -= 1
                found = self._substitution()
                if self.peek() != "I":
                    return found
                self.template_arguments()
                return self.know(found)
            return self.know(self._type(first))

    def _type(self, first: str) -> str:
        if first in "PROCG":
            return self.type() + POINTERS[first]
        if first in "rVK":
            return self._qualified(first)
        if first == "F":
            return self._function()
        if first == "A":
            if self.peek() != "_":
                self._number_or_expression()
            self.expect("_")
            return self.type() + " []"
        if first == "M":
            owner = self.type()
            return f"{self.type()} {owner}::*"
        if first == "U":
            name = self._source_name()
            if self.peek() == "I":
                self.template_arguments()
            return f"{self.type()} {name}"
        if first == "u":
            name = self._source_name()
            if self.peek() == "I":
                self.template_arguments()
            return name
        self.at -= 1
        return self._named_type(first)

    def _qualified(self, first: str) -> str:
        """All qualifiers and the type are one for substitutions."""
        suffix = QUALIFIERS[first]
        while self.peek() and self.peek() in "rVK":
            suffix = QUALIFIERS[self.next()] + suffix
        if self.take("F"):
            return self._function() + suffix
        return self.type() + suffix

    def _named_type(self, first: str) -> str:
        if first == "S":  # St: in std
            self.at -= 1
        if first != "T":
            return self.name()
        if self.text[self.at + 1 : self.at + 2] in tuple("sue"):  # an elaborated struct, union, enum
            self.at += 2
            return self.name()
        found = self._template_parameter()
        if self.peek() == "I":
            self.know(found)
            self.template_arguments()
        return found

    def _function(self) -> str:
        self.take("Y")
        result = self.type()
        while not self.take("E"):
            if self.peek() in "RO" and self.text[self.at + 1 : self.at + 2] == "E":
                self.at += 1
            else:
                self.type()
        return f"{result} ()"

    def _type_d(self) -> str:
        kind = self.next()
        if kind in BUILTIN_D:
            return BUILTIN_D[kind]
        if kind == "F":
            number = self.number()
            self.take("x")
            if not self.take("b"):
                self.expect("_")
            return f"_Float{number}"
        if kind in "BU":
            self._number_or_expression()
            self.expect("_")
            return "_BitInt"
        if kind == "p":
            return self.know(self.type())
        if kind in "tT":
            expression(self)
            self.expect("E")
            return self.know("decltype")
        if kind == "v":
            self._number_or_expression()
            self.expect("_")
            return self.know(self.type() + " __vector")
        if kind in "oOwx":  # exception specifications of a function type
            if kind == "O":
                expression(self)
                self.expect("E")
            while kind == "w" and not self.take("E"):
                self.type()
            self.take("Dx")
            self.expect("F")
            return self.know(self._function())
        raise NotMangled

    def _number_or_expression(self) -> None:
        if self.take("_") or self.peek() not in DIGITS:
            expression(self)
        else:
            self.number()
