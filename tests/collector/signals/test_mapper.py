"""Samples made rows: renames, units, labels, and what is left out."""

import json

import pytest

from tailburn.collector.signals.exposition import Dropped
from tailburn.collector.signals.loading import load_catalogue
from tailburn.collector.signals.mapper import Mapper, signals_table
from tailburn.engine.schema import SIGNALS
from tests.collector.signals.reading import RECEIVED_NS, mapped, rows, scanned, target, values


def labels(text: str) -> dict[str, str]:
    (row,) = rows(text)
    found: dict[str, str] = json.loads(row["labels"])
    return found


def test_of_two_names_for_one_thing_the_newer_counts_alone() -> None:
    text = "vllm:gpu_cache_usage_perc 0.25\nvllm:kv_cache_usage_perc 0.5\n"
    assert values(text) == {"kv_usage_ratio gauge": 0.5}
    assert values("vllm:gpu_cache_usage_perc 0.25\n") == {"kv_usage_ratio gauge": 0.25}


def test_a_declared_name_counts_before_a_weaker_one_that_has_samples() -> None:
    text = "# TYPE vllm:kv_cache_usage_perc gauge\nvllm:gpu_cache_usage_perc 0.25\n"
    assert values(text) == {}
    assert mapped(text).told["kv_usage_ratio"].samples == 0


def test_a_program_that_had_nothing_to_count_yet_is_known_by_what_it_declares() -> None:
    found = mapped("# TYPE litellm_in_flight_requests gauge\npython_info 1\n")
    assert found.sources == {"litellm"}
    assert mapped("# TYPE vllm:num_requests_running gauge\npython_info 1\n").sources == set()


def test_a_name_that_had_another_type_in_an_older_version_does_not_count() -> None:
    text = "# TYPE sglang:kv_transfer_latency_ms gauge\nsglang:kv_transfer_latency_ms 3\n"
    assert mapped(text).told == {}
    assert set(mapped(text.replace("gauge", "histogram")).told) == {"kv_transfer_time"}


def test_units_are_ours() -> None:
    assert values("DCGM_FI_DEV_FB_USED 3\nDCGM_FI_DEV_GPU_UTIL 50\n") == {
        "gpu_memory_used_bytes gauge": 3 * 2**20,
        "gpu_busy_ratio gauge": 0.5,
    }


def test_a_histogram_keeps_its_buckets_in_our_unit() -> None:
    text = (
        'sglang:kv_transfer_latency_ms_bucket{le="250"} 3\n'
        'sglang:kv_transfer_latency_ms_bucket{le="+Inf"} 4\n'
        "sglang:kv_transfer_latency_ms_sum 900\nsglang:kv_transfer_latency_ms_count 4\n"
    )
    found = {(r["kind"], json.loads(r["labels"]).get("le")): r["value"] for r in rows(text)}
    assert found == {
        ("histogram_bucket", "0.25"): 3.0,
        ("histogram_bucket", "+Inf"): 4.0,
        ("histogram_sum", None): pytest.approx(0.9),
        ("histogram_count", None): 4.0,
    }


def test_two_counters_make_sum_and_count_of_a_histogram() -> None:
    text = "nv_inference_queue_duration_us 7e6\nnv_inference_request_success 2\n"
    found = values(text)
    assert found["queue_time histogram_sum"] == pytest.approx(7.0)
    assert found["queue_time histogram_count"] == 2.0


def test_labels_are_ours_and_the_rest_is_left_out() -> None:
    text = 'vllm:num_requests_waiting{engine="1",model_name="llama",secret="x"} 3\n'
    assert labels(text) == {
        "model": "llama",
        "rank": "1",
        "replica": "engine-a:8000",
        "source": "vllm",
    }


def test_series_that_differ_in_labels_left_out_are_made_one() -> None:
    keys = ['hashed_api_key="a",status_code="200"', 'hashed_api_key="b",status_code="200"']
    text = "".join(f"litellm_proxy_total_requests_metric_total{{{k}}} 5\n" for k in keys)
    (row,) = rows(text)
    assert row["value"] == 10.0
    assert "hashed_api_key" not in row["labels"]


def test_ratios_are_not_added_up() -> None:
    text = 'vllm:kv_cache_usage_perc{x="1"} 0.5\nvllm:kv_cache_usage_perc{x="2"} 0.75\n'
    assert values(text) == {"kv_usage_ratio gauge": 0.75}
    text = 'DCGM_FI_DEV_GPU_UTIL{x="1"} 50\nDCGM_FI_DEV_GPU_UTIL{x="2"} 100\n'
    assert values(text) == {"gpu_busy_ratio gauge": 0.75}


def test_queues_of_a_split_engine_are_parts() -> None:
    text = "sglang:num_queue_reqs 2\nsglang:num_decode_transfer_queue_reqs 3\n"
    parts = {
        json.loads(r["labels"])["part"]: r["value"]
        for r in rows(text)
        if r["name"] == "requests_waiting"
    }
    assert parts == {"queue_reqs": 2.0, "decode_transfer_queue_reqs": 3.0}


def test_a_number_that_stands_in_labels_is_read() -> None:
    text = 'vllm:cache_config_info{block_size="16",num_gpu_blocks="5943"} 1\n'
    assert values(text)["kv_capacity_tokens gauge"] == 16 * 5943
    unknown = values('vllm:cache_config_info{block_size="16",num_gpu_blocks="None"} 1\n')
    assert "kv_capacity_tokens gauge" not in unknown


def test_what_stands_in_labels_alone_is_a_row_of_one_with_those_labels() -> None:
    (driver,) = (
        row
        for row in rows('DCGM_FI_DEV_SM_CLOCK{gpu="0",DCGM_FI_DRIVER_VERSION="580.65.06"} 1980\n')
        if row["name"] == "gpu_driver"
    )
    assert driver["value"] == 1.0
    assert json.loads(driver["labels"])["driver"] == "580.65.06"
    assert "gpu_driver gauge" not in values('DCGM_FI_DEV_SM_CLOCK{gpu="0"} 1980\n')


def test_the_start_of_a_process_does_not_say_whose_it_is() -> None:
    told = mapped("process_start_time_seconds 1796160068.07\nvllm:num_requests_waiting 1\n")
    assert told.sources == {"vllm"}
    assert told.told["process_start_seconds"].samples == 1


def test_of_label_sets_that_stay_for_ever_the_newest_counts() -> None:
    text = (
        'vllm:lora_requests_info{waiting_lora_adapters="a,b"} 1796145001\n'
        'vllm:lora_requests_info{waiting_lora_adapters="a,b,c"} 1796145003\n'
        'vllm:lora_requests_info{waiting_lora_adapters=""} 1796145002\n'
    )
    assert values(text) == {"lora_adapters_waiting gauge": 3.0}


def test_a_router_that_uses_the_names_of_vllm_is_no_engine() -> None:
    text = 'vllm:num_requests_running{server="http://a"} 2\n'
    assert values(text) == {"gateway_requests_running gauge": 2.0}
    assert mapped(text).sources == {"production-stack"}


def test_what_stands_for_not_measured_is_left_out() -> None:
    text = "DCGM_FI_DEV_SM_CLOCK 9223372036854775794\nDCGM_FI_DEV_MEM_CLOCK 100\n"
    found = scanned(text)
    told = Mapper(load_catalogue(), target()).map(found)
    assert found.dropped == {Dropped.BLANK: 1}
    assert set(told.told) == {"gpu_memory_clock_hz"}


def test_a_series_that_comes_twice_counts_once() -> None:
    text = 'tgi_queue_size{a="1",b="2"} 3\ntgi_queue_size{b="2",a="1"} 4\ntgi_queue_size 5\n'
    found = scanned(text)
    told = Mapper(load_catalogue(), target()).map(found)
    assert found.dropped == {Dropped.DUPLICATE: 1}
    assert list(told.rows.values()) == [[3.0, 5.0]]


def test_labels_that_can_not_be_read_cost_one_sample() -> None:
    found = scanned('tgi_queue_size{a="1",a="2"} 3\ntgi_queue_size 5\n')
    told = Mapper(load_catalogue(), target()).map(found)
    assert found.dropped == {Dropped.BROKEN: 1}
    assert list(told.rows.values()) == [[5.0]]


def test_a_long_value_of_a_label_is_cut() -> None:
    assert len(labels(f'tgi_queue_size{{x="{"y" * 9000}"}} 1\n')) == 2
    found = labels(f'vllm:num_requests_waiting{{model_name="{"m" * 9000}"}} 1\n')
    assert found["model"] == "m" * 256


def test_a_target_s_own_labels_go_into_every_row() -> None:
    at = target(job="chat", pool="interactive", team="none of ours", pod="chat-0", node="n1")
    (row,) = rows("tgi_queue_size 1\n", at=at)
    assert json.loads(row["labels"]) == {
        "node": "n1",
        "pool": "interactive",
        "replica": "chat-0",
        "source": "tgi",
    }
    assert row["service"] == "chat"
    assert json.loads(row["resource"]) == {
        "job": "chat",
        "service.instance.id": "engine-a:8000",
        "service.name": "chat",
    }


def test_rows_are_of_the_store_s_form_and_say_that_the_target_is_up() -> None:
    catalogue, at = load_catalogue(), target()
    up = signals_table(mapped("tgi_queue_size 1\n"), catalogue, at, RECEIVED_NS)
    down = signals_table(None, catalogue, at, RECEIVED_NS)
    assert up.schema == down.schema == SIGNALS
    assert [(r["name"], r["value"]) for r in up.to_pylist()] == [
        ("up", 1.0),
        ("requests_waiting", 1.0),
    ]
    assert [(r["name"], r["value"]) for r in down.to_pylist()] == [("up", 0.0)]
    assert {r["received_ns"] for r in up.to_pylist()} == {RECEIVED_NS}


def test_a_mapper_gives_the_same_from_one_answer_to_the_next() -> None:
    mapper = Mapper(load_catalogue(), target())
    first = mapper.map(scanned('vllm:num_requests_waiting{engine="0"} 1\ntgi_queue_size 2\n'))
    mapper.map(scanned("tgi_queue_size 3\n"))
    again = mapper.map(scanned('vllm:num_requests_waiting{engine="0"} 1\ntgi_queue_size 2\n'))
    assert first.rows == again.rows
