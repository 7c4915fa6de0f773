"""Attention of keys and values that lie in pages of a pool, which a table finds: as flash_attn_with_kvcache takes them (a row of pages an entry, and its
number of keys), or in FlashInfer's form (all pages in one list, where each entry's begin, and the keys in its last page)."""

import dataclasses
import itertools
import math

import numpy

from attest_kernels import conventions, modifications, packed

NAMES = {"block_table": "pages", "block_tables": "pages", "page_table": "pages", "kv_indices": "pages", "paged_kv_indices": "pages",
         "cache_seqlens": "key_lengths", "seqlens_k": "key_lengths", "seq_lens": "key_lengths", "kv_lens": "key_lengths",
         "kv_indptr": "page_starts", "paged_kv_indptr": "page_starts", "kv_last_page_len": "key_lengths", "paged_kv_last_page_len": "key_lengths"}
ROLES = {**{name: role for name, role in conventions.ROLES.items() if role not in packed.NOT_TAKEN}, **NAMES,
         "k_cache": "k", "key_cache": "k", "v_cache": "v", "value_cache": "v"}
FLAGS = (*conventions.FLAGS, "pages", "page_starts", "key_lengths")
POOLS = {"NHD": (0, 2, 1, 3), "HND": (0, 1, 2, 3)}  # of [pages, H, page_size, D] the order of axes; its own inverse
USUAL_PAGES = (16, 64, 256)
PROBED_PAGES = (16, 32, 64, 128, 256)
ODD_PAGES = (1, 3)


@dataclasses.dataclass(frozen=True)
class Paged(conventions.Convention):
    """Attention whose K and V are pools of pages; Q is [B, N, H, D] or [B, H, N, D], and a causal mask is each entry's own."""
    pool: str = "NHD"
    page_size: int = 16  # of probes

    def call(self, framework, given, causal, scale):
        """As conventions.Convention.call. K and V are [pages, H, page_size, D]; "pages" is a list of rows, or with "page_starts" one list, and
        "key_lengths" a list. With "query_starts" Q is [1, H, T, D] of entries one after the other; the function gets [B, H, N, D]."""
        dense = self.unpacked(framework, given, given["q"])
        taken = {"q": framework.given(dense, self.axes_of("q")), **{role: framework.given(given[role], POOLS[self.pool]) for role in "kv"}}
        tables = {role: framework.integers(given[role]) for role in ("pages", "page_starts", "key_lengths") if role in given}
        grouped = given["q"].shape[1] != given["k"].shape[1]
        made = self.ask(taken, causal, scale, {**self.told(framework, given), **tables, "grouped": grouped})
        o, lse = self.parts(made, dense.shape, given["v"].shape[3])
        found = {"o": framework.back(o, self.axes_of("o"))}
        if lse is not None:
            lse = framework.back(lse, self.axes_of("lse"))
            found["lse"] = lse if self.lse_base == math.e else lse * math.log(self.lse_base)
        return {name: self.packed_again(framework, given, one) for name, one in found.items()}

    def like_o(self, framework, given, array):
        return super().like_o(framework, given, self.unpacked(framework, given, array))

    def unpacked(self, framework, given, array):
        """An array of queries, an entry each."""
        starts = given.get("query_starts")
        if starts is None:
            return array
        lengths = [end - begin for begin, end in zip(starts, starts[1:])]
        rows = max(1, *lengths)
        dense = framework.zeros((len(lengths), array.shape[1], rows, array.shape[3]), array)
        for b, length in enumerate(lengths):
            dense[b, :, self.rows_of_entry(rows, length)] = array[0, :, starts[b]:starts[b] + length]
        return dense

    def packed_again(self, framework, given, array):
        starts = given.get("query_starts")
        if starts is None:
            return array
        packed = framework.zeros((1, array.shape[1], starts[-1], *array.shape[3:]), array)
        for b, (begin, end) in enumerate(zip(starts, starts[1:])):
            packed[0, :, begin:end] = array[b, :, self.rows_of_entry(array.shape[2], end - begin)]
        return packed

    def rows_of_entry(self, rows, length):
        """Where a mask sees them as it would see the entry alone: at its corner."""
        return slice(0, length) if self.corner == "top_left" else slice(rows - length, rows)

    def is_grouped(self, given):
        return False  # call() knows

    def example(self, drawn, causal, scale):
        """Entries whose numbers of keys differ, the first at full length, in pages out of order; NaN where no key lies."""
        q, k, v = (drawn[name] for name in "qkv")
        lengths = [max(0, k.shape[2] - 2 * b) for b in range(q.shape[0])]
        counts = [-(-length // self.page_size) for length in lengths]
        order = iter(numpy.random.default_rng(8).permutation(sum(counts) + 1).tolist())
        rows = [[next(order) for _ in range(count)] for count in counts]
        pools = []
        for source in (k, v):
            pool = numpy.full((sum(counts) + 1, k.shape[1], self.page_size, k.shape[3]), math.nan)
            for b, pages in enumerate(rows):
                for number, page in enumerate(pages):
                    keys = source[b, :, number * self.page_size:min((number + 1) * self.page_size, lengths[b])]
                    pool[page, :, :keys.shape[1]] = keys
            pools.append(pool)
        of_queries = ["q", *(role for role in modifications.OF_OUTPUT if role in drawn)]
        made = [self.exact({**drawn, **{role: drawn[role][b:b + 1] for role in of_queries}, "k": k[b:b + 1, :, :length], "v": v[b:b + 1, :, :length]},
                           causal, scale) for b, length in enumerate(lengths)]
        want = {"o": numpy.concatenate([one[0] for one in made]), "lse": numpy.concatenate([one[1] for one in made])}
        return {"q": q, "k": pools[0], "v": pools[1], **self.table(rows, lengths), **self.modified(drawn)}, want

    def table(self, rows, lengths):
        if "page_starts" in self.names:
            starts = list(itertools.accumulate((len(pages) for pages in rows), initial=0))
            in_last = [length - max(0, len(pages) - 1) * self.page_size for pages, length in zip(rows, lengths)]
            return {"pages": [page for pages in rows for page in pages], "page_starts": starts, "key_lengths": in_last}
        columns = max(1, *(len(pages) for pages in rows))
        return {"pages": [pages + [-1] * (columns - len(pages)) for pages in rows], "key_lengths": lengths}

    def candidates(self, declared):
        for one, pool, size in itertools.product(super().candidates(declared), POOLS, USUAL_PAGES):
            yield dataclasses.replace(one, pool=pool, page_size=size)

    def facts(self, answers):
        """answers(page_size=) asks for other pages: any where it takes odd ones, else those of the usual ones that it takes."""
        takes_any = all(answers(page_size=size) for size in ODD_PAGES)
        return {"pages": "csr" if "page_starts" in self.names else "dense",
                "page_sizes": [] if takes_any else [size for size in PROBED_PAGES if answers(page_size=size)]}

    def features(self):
        return ["lengths"]

    def parameters(self):
        return super().parameters().replace("]", f"; pools {','.join(self.pool)}]", 1)


def takes_pages(names):
    """Is it a function of keys in pages, by its parameters' names?"""
    return any(NAMES.get(name) == "pages" for name in names)


def attention(function, declared):
    """A Paged with the function's own names. Raises NoConvention."""
    positional, names = conventions.signature_of(function, modifications.roles_with(ROLES, declared), (), FLAGS)
    if "key_lengths" not in names:
        raise conventions.NoConvention(f"{function.__name__} takes a table of pages and no lengths; allowed besides: {', '.join(NAMES)}")
    return Paged(function, names, positional, none=modifications.none_of(function, names))
