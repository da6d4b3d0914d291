"""`learn`: rows in, a file of contracts out, and what written contracts get wrong."""

import json

import pytest

from gecko_graph import Toolkit
from gecko_graph.values.documents import read_document
from tests.learning.shop import rows, toolkit, write_rows
from tests.learning.traffic import OrderService, bare_spec


def test_rows_become_a_file_that_is_loaded(run, tmp_path):
    spec, calls, target = tmp_path / "shop.json", tmp_path / "calls.jsonl", tmp_path / "shop.contracts.yaml"
    spec.write_text(json.dumps(toolkit().to_openapi()), encoding="utf-8")
    write_rows(calls, rows(200))
    with calls.open("a", encoding="utf-8") as more:
        more.write("no row\n")
    code, _, err = run("learn", spec, calls, "-o", target)
    assert code == 0
    assert all(part in err for part in ("calls.jsonl:201", "200 rows", "refused: "))
    evidence = read_document(target)["contracts"]["buy"]["evidence"]
    assert sum(evidence["refusals"].values()) == 200 - evidence["lawful"]
    assert "unknown" in evidence
    known = Toolkit.from_openapi(spec).with_contracts(target)
    assert known["buy"].contract is not None
    wrong = {"contracts": {"buy": {"effects": [], "returns": 1}}}
    written = tmp_path / "written.yaml"
    written.write_text(json.dumps(wrong), encoding="utf-8")
    code, _, err = run("learn", spec, calls, "--contracts", written, "-o", tmp_path / "other.yaml")
    assert code == 1
    assert "contradicted: buy" in err


@pytest.mark.parametrize("packed", [("before", "change", "result"), ("args", "before", "change", "result")])
def test_rows_may_be_a_folder_or_a_glob_and_parquet(run, tmp_path, packed):
    arrow = pytest.importorskip("pyarrow", reason="the extra `training` is not installed")
    parquet = pytest.importorskip("pyarrow.parquet")
    spec, some = spec_of(tmp_path, toolkit().to_openapi()), [each.to_row() for each in rows(200)]
    (folder := tmp_path / "rows").mkdir()
    (tmp_path / "all.jsonl").write_text("".join(json.dumps(each) + "\n" for each in [*some, {"v": 1}]))
    kept = [{key: json.dumps(each) if key in packed else each for key, each in row.items()} for row in some]
    (folder / "a.jsonl").write_text("".join(json.dumps(each) + "\n" for each in some[:90]))
    parquet.write_table(arrow.Table.from_pylist(kept[90:]), folder / "b.parquet")
    with (folder / "c.jsonl").open("w") as stream:
        stream.write('{"v": 1}\n')
    made = []
    for number, source in enumerate((tmp_path / "all.jsonl", folder, f"{folder}/*")):
        target = tmp_path / f"{number}.contracts.yaml"
        code, _, err = run("learn", spec, source, "-o", target)
        assert (code, "no usable `tool`" in err) == (0, True)
        made.append(target.read_text("utf-8"))
    assert made[0] == made[1] == made[2]
    code, _, err = run("learn", spec, folder / "*.har", "-o", target)
    assert (code, "no files of rows" in err) == (2, True)


@pytest.mark.parametrize(("text", "cause"), [("", "no rows"), ("no row\n", "calls.jsonl:1")])
def test_rows_of_which_none_can_be_used_leave_what_is_there(run, tmp_path, text, cause):
    calls, target = tmp_path / "calls.jsonl", tmp_path / "shop.contracts.yaml"
    calls.write_text(text, encoding="utf-8")
    target.write_text("kept", encoding="utf-8")
    code, _, err = run("learn", spec_of(tmp_path, toolkit().to_openapi()), calls, "-o", target)
    assert (code, cause in err, target.read_text("utf-8")) == (2, True, "kept")


def spec_of(tmp_path, document):
    file = tmp_path / "api.json"
    file.write_text(json.dumps(document), encoding="utf-8")
    return file


def test_a_model_is_asked_after_its_cost_is_shown(run, tmp_path, server, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    server.said["WrittenContract"] = {"requires": [{"check": "args.count < 1000", "error": "too many"}]}
    calls, target = tmp_path / "calls.jsonl", tmp_path / "shop.contracts.yaml"
    write_rows(calls, rows(60))
    words = ["learn", spec_of(tmp_path, toolkit().to_openapi()), calls, "-o", target]
    code, _, err = run(*words, "--model", "openai:gpt-5-mini", "--base-url", server.url)
    assert code == 0, err
    assert "at most 2 questions, about" in err
    assert "$0." in err
    assert len(server.asked) == 1
    (one,) = [each for each in read_document(target)["contracts"]["buy"]["requires"] if each["id"] == "written-1"]
    assert one["evidence"] | {"status": "proposed", "by": "model", "for": 0} == one["evidence"]


def test_a_sandbox_is_probed_and_its_rows_are_kept(run, tmp_path, monkeypatch):
    monkeypatch.setenv("SHOP_KEY", OrderService.key)
    spec, target = spec_of(tmp_path, bare_spec()), tmp_path / "order.contracts.yaml"
    with OrderService() as service:
        words = ["--probe", service.url, "--probes", "12", "--auth", "ApiKey=env:SHOP_KEY"]
        code, _, err = run("learn", spec, "-o", target, *words)
    assert code == 0, err
    lines = (tmp_path / "order.contracts.probes.jsonl").read_text(encoding="utf-8").splitlines()
    assert len(lines) == 12
    assert "never called" in err or len(read_document(target)["contracts"]) == 7


def test_without_a_named_sandbox_nothing_is_probed_and_a_file_of_contracts_is_named_as_one(run, tmp_path):
    spec = spec_of(tmp_path, {**bare_spec(), "servers": [{"url": "http://127.0.0.1:1"}]})
    assert run("learn", "api.yaml", "calls.jsonl", "-o", tmp_path / "x.txt")[0] == 2
    assert run("learn", spec, "-o", tmp_path / "a.yaml")[0] == 2
    assert run("learn", spec, "-o", tmp_path / "a.yaml", "--probe", "not a server", "--auth", "ApiKey=env:HOME")[0] == 2
    assert run("learn", spec, "-o", tmp_path / "a.yaml", "--probe", "http://127.0.0.1:1")[0] == 2
    assert not (tmp_path / "a.yaml").exists()
