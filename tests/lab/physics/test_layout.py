"""What a layout refuses, and what its words say."""

from dataclasses import replace

import numpy as np
import pytest

from tailburn.lab.physics import (
    ENGINES,
    GPUS,
    KNOB_INDEX,
    MODELS,
    NEUTRAL,
    Layout,
    Observed,
    Scales,
    StepModel,
    calibrate,
    engine_scales,
    predict_ns,
)
from tailburn.lab.physics import coef as c

GOOD = Layout("Llama-3.1-70B", "H100", 4)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"model": "Llama-3.1-70"}, "unknown model 'Llama-3.1-70': did you mean Llama-3.1-70B"),
        ({"gpu": "H20"}, "unknown GPU 'H20': did you mean H200"),
        ({"tensor_ranks": 3}, r"H100 has all-reduce on \[2, 4, 8\] ranks, not 3"),
        ({"tensor_ranks": 0}, "tensor_ranks must be >= 1, got 0"),
        ({"tensor_ranks": 24}, "64 heads of Llama-3.1-70B do not split over 24 ranks"),
        ({"stages": -1}, "stages must be >= 1, got -1"),
        ({"gpu": "A100"}, r"A100 has no fp8 products, only \['bf16'\]"),
        ({"kv": "int3"}, r"kv format 'int3' is unknown, accepted are \['bf16', 'fp8'\]"),
        ({"expert_ranks": 8}, "Llama-3.1-70B has no experts to spread over 8 ranks"),
        ({"engine": "tgi"}, "unknown engine 'tgi', accepted are vllm, sglang, trtllm"),
    ],
)
def test_a_layout_that_cannot_be_says_what_can(changes: dict[str, object], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        replace(GOOD, **changes).coefficients()  # type: ignore[arg-type]


def test_an_unknown_knob_names_the_nearest() -> None:
    with pytest.raises(ValueError, match="unknown knob 'hbm': did you mean hbm_ratio"):
        StepModel.of(GOOD).with_knobs(hbm=0.8)


def test_a_scale_must_be_a_number_of_time() -> None:
    with pytest.raises(ValueError, match="'gemm': -1"):
        Scales(gemm=-1.0)


def test_knobs_are_neutral_in_a_fresh_array_and_lie_before_the_coefficients() -> None:
    coef = StepModel.of(GOOD).coef
    assert {name: coef[place] for name, place in KNOB_INDEX.items()} == NEUTRAL
    assert sorted(KNOB_INDEX.values()) == list(range(c.KNOBS))
    assert coef.dtype == np.float64
    assert coef.flags.c_contiguous
    assert len(coef) == c.SIZE


def test_setting_a_knob_leaves_the_model_it_came_from_alone() -> None:
    well = StepModel.of(GOOD)
    ill = well.with_knobs(hbm_ratio=0.5)
    assert well.coef[c.HBM_RATIO] == 1.0
    assert ill.coef[c.HBM_RATIO] == 0.5


@pytest.mark.parametrize("gpu", GPUS)
@pytest.mark.parametrize("model", MODELS)
def test_every_model_runs_on_every_gpu(model: str, gpu: str) -> None:
    step = StepModel.of(Layout(model, gpu, 2, weights="bf16")).step_ns(8, 8 * 1_000.0)
    assert 1e6 < step < 1e9


@pytest.mark.parametrize(
    ("model", "billions"),
    [
        ("Llama-3.1-8B", 8.03),
        ("Llama-3.1-70B", 70.6),
        ("Llama-3.1-405B", 405.9),
        ("Qwen3-32B", 32.8),
        ("Qwen3-235B-A22B", 235.1),
        ("Mixtral-8x7B", 46.7),
    ],
)
def test_models_have_the_parameters_their_makers_state(model: str, billions: float) -> None:
    assert MODELS[model].parameters / 1e9 == pytest.approx(billions, rel=0.01)


def test_keys_and_values_of_a_token_take_what_is_known_of_them() -> None:
    assert MODELS["Llama-3.1-8B"].kv_bytes_per_token("bf16") == 128 * 1024
    assert MODELS["Llama-3.1-70B"].kv_bytes_per_token("bf16") == 320 * 1024
    assert MODELS["Llama-3.1-70B"].kv_bytes_per_token("fp8") == 160 * 1024


@pytest.mark.parametrize("engine", ENGINES)
def test_a_model_without_a_fit_takes_its_engines_general_scales(engine: str) -> None:
    assert engine_scales(engine, "Llama-3.1-405B", "fp8") == engine_scales(
        engine, "Mixtral-8x7B", "bf16"
    )


def _seen(step_ns: float = 2e6, batch: float = 4.0) -> Observed:
    one = np.ones(3)
    return Observed(batch * one, 900 * one, 0 * one, 0 * one, 0 * one, step_ns * one)


def test_observed_steps_name_the_row_and_column_that_is_wrong() -> None:
    with pytest.raises(ValueError, match=r"row 0, step_ns: must be finite and >= 0, got -1"):
        _seen(step_ns=-1.0)
    with pytest.raises(ValueError, match="columns must be of one length"):
        replace(_seen(), batch=np.ones(2))


def test_calibration_without_rows_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one measured step"):
        calibrate([(GOOD, _seen().where(np.zeros(3, dtype=bool)))])


def test_calibration_finds_the_scales_that_made_the_steps() -> None:
    true = Scales(1.3, 1.1, 1.4, 1.2, 3_100.0, 21.0, 1_700.0, 0.0)
    rng, rows = np.random.default_rng(43), 60
    parts = []
    for ranks in (1, 2, 8):
        layout = Layout("Llama-3.1-70B", "H200", ranks, scales=Scales())
        batch = np.exp(5 * rng.random(rows)).round()
        chunk = np.round(100 + 7_900 * rng.random(rows))
        context, share = batch * (100 + 7_900 * rng.random(rows)), rng.random(rows)
        blank = Observed(batch, context, share, chunk, chunk**2 / 2, np.ones(rows))
        coef = replace(layout, scales=true).coefficients()
        parts.append((layout, replace(blank, step_ns=predict_ns(coef, blank))))
    found = calibrate(parts)
    assert found.mape < 0.005
    # The host's share of a sequence is not told from attention's: only their sum is.
    near = found.scales.array()[:5] / true.array()[:5]
    assert np.all(np.abs(near - 1) < 0.1)
