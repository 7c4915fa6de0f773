"""Times Plans that differ in one choice of the algorithm and nothing else, full and causal.

    PYTHONPATH=experiments python3 experiments/pairs.py --library build/release/lib/libattest_kernels.so --out pairs.jsonl
"""

import ladder
import timing

TILES = "qt32 kt32 tm4 tn4"
BASE = "loop_order=queries_outside normalise=at_the_end masked_tiles=boundary exp=fast passes=one"
CHOICES = ["normalise=every_step", "masked_tiles=all", "exp=library", "exp=exp2", "passes=two", "loop_order=keys_outside",
           "loop_order=keys_outside normalise=every_step"]


def plan_of(choice):
    """The base with other values for the fields that `choice` names."""
    fields = dict(field.split("=") for field in BASE.split())
    fields.update(field.split("=") for field in choice.split())
    return TILES + " " + " ".join(f"{name}={value}" for name, value in fields.items())


def main():
    arguments = timing.parser(__doc__.splitlines()[0]).parse_args()
    library = timing.open_library(arguments.library)
    for mask in ("none", "causal_top_left"):
        shape = f"{ladder.LEDGER} {mask} fp32"
        results = timing.time_shape(library, shape, [("f_controlled_pairs", plan_of(choice)) for choice in ["", *CHOICES]],
                                    [], None, arguments.rounds)
        timing.report(library, arguments.out, "pairs", results)


if __name__ == "__main__":
    main()
