"""Attention of packed sequences, as flash_attn_varlen_func takes them: [T, H, D], whose entries begin where cu_seqlens says."""

import dataclasses
import math

import numpy

from attest_kernels import conventions, modifications

NAMES = {"cu_seqlens_q": "query_starts", "cu_seqlens_k": "key_starts", "cu_seqlens_kv": "key_starts",
         "max_seqlen_q": "most_queries", "max_seqlen_k": "most_keys", "max_seqlen_kv": "most_keys"}
NOT_TAKEN = ("o", "lse", *modifications.OF_PAIRS)  # which rows of a bias an entry has is no convention
ROLES = {**{name: role for name, role in conventions.ROLES.items() if role not in NOT_TAKEN}, **NAMES}
FLAGS = (*conventions.FLAGS, "query_starts", "key_starts", "most_queries", "most_keys")
ROWS = {"HT": (1, 0, 2), "TH": (0, 2, 1)}  # of LSE as [H, B, N] or [B, N, H] the order of axes that makes it [B, H, N]


def starts_of(given, role, of):
    """First rows of the entries, and the number of all rows: those given, or of entries that are all of one length."""
    batch, _, rows, _ = given[of].shape
    return given[role] if role in given else [b * rows for b in range(batch + 1)]


@dataclasses.dataclass(frozen=True)
class Packed(conventions.Convention):
    """Attention of packed sequences: O [T, H, D], and LSE [H, T] or [T, H] where it gives one. `layout` and `lse_order` say THD and HT or TH."""

    def call(self, framework, given, causal, scale):
        """As conventions.Convention.call; with "query_starts" and "key_starts", lists, the arrays are [1, H, T, D] of entries one after the other."""
        (batch, heads, rows, _), columns = given["q"].shape, given["v"].shape[3]

        more = self.told(framework, given)
        for role, most, of in (("query_starts", "most_queries", "q"), ("key_starts", "most_keys", "k")):
            starts = starts_of(given, role, of)
            more[role] = framework.integers(starts)
            more[most] = max((end - begin for begin, end in zip(starts, starts[1:])), default=0)
        taken = {role: self.like_o(framework, given, given[role]) for role in self.positional}
        made = self.ask(taken, causal, scale, more)
        o, lse = self.parts(made, (batch * rows, heads), columns)
        found = {"o": framework.back(o.reshape(batch, rows, heads, columns), (0, 2, 1, 3))}
        if lse is not None:
            lse = lse.reshape((heads, batch, rows) if self.lse_order == "HT" else (batch, rows, heads))
            lse = framework.back(lse, ROWS[self.lse_order])
            found["lse"] = lse if self.lse_base == math.e else lse * math.log(self.lse_base)
        return found

    def like_o(self, framework, given, array):
        """[T, H, D], as all of its arrays."""
        return framework.given(array, (0, 2, 1, 3)).reshape(array.shape[0] * array.shape[2], array.shape[1], array.shape[3])

    def is_grouped(self, given):
        return given["q"].shape[1] != given["k"].shape[1]

    def shapes(self, rows, columns):
        total, heads = rows
        return (total, heads, columns), (heads, total) if self.lse_order == "HT" else (total, heads)

    def example(self, drawn, causal, scale):
        """Entries whose lengths differ, the first at full length."""
        of_queries = ["q", *(role for role in modifications.OF_OUTPUT if role in drawn)]
        given, o, lse = {name: [] for name in (*of_queries, "k", "v")}, [], []
        starts = {"query_starts": [0], "key_starts": [0]}
        for b in range(drawn["q"].shape[0]):
            queries, keys = (max(0, drawn[name].shape[2] - (2 + of) * b) for of, name in enumerate("qk"))
            entry = {name: drawn[name][b:b + 1, :, :queries if name in of_queries else keys] for name in given}
            made = self.exact({**drawn, **entry}, causal, scale)
            for list_of, one in (*((given[name], entry[name]) for name in given), (o, made[0]), (lse, made[1])):
                list_of.append(one)
            starts["query_starts"].append(starts["query_starts"][-1] + queries)
            starts["key_starts"].append(starts["key_starts"][-1] + keys)
        joined = {name: numpy.concatenate(parts, 2) for name, parts in given.items()}
        return {**self.modified(drawn), **joined, **starts}, {"o": numpy.concatenate(o, 2), "lse": numpy.concatenate(lse, 2)}

    def candidates(self, declared):
        for order in ROWS:
            yield dataclasses.replace(self, layout="THD", lse_order=order, corner=declared.get("causal", self.corner))

    def features(self):
        return ["lengths"]


def takes_lengths(names):
    """Is it a function of packed sequences, by its parameters' names?"""
    return any(NAMES.get(name) == "query_starts" for name in names)


def attention(function, declared):
    """A Packed with the function's own names. Raises NoConvention."""
    positional, names = conventions.signature_of(function, modifications.roles_with(ROLES, declared), (), FLAGS)
    return Packed(function, names, positional, none=modifications.none_of(function, names))
