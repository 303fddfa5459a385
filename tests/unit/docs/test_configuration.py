"""The example of the configuration page is valid and sets every table."""

import re
from pathlib import Path

from interlock.config.form import ConfigForm, key_schemas, parse_config
from interlock.config.model import Config
from publish.configuration import config_page

PAGE = (Path(__file__).parents[3] / "docs" / "configuration.md").read_text(encoding="utf-8")


def test_the_example_is_valid_and_sets_the_values_that_the_page_names() -> None:
    (example,) = re.findall(r"^```toml config\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
    config = parse_config(example)
    assert isinstance(config, Config), config
    assert config.baseline.to_json() == {"autonomy": "full_auto_stop_on_user_deps", "riskPolicy": "balanced"}
    assert config.artifact_bytes_max == 4_000_000
    assert {key.partition(".")[0] for key in config.said} == set(ConfigForm.model_fields)


def test_the_reference_page_lists_every_key_and_no_other() -> None:
    page = config_page()
    documented = re.findall(r"^\| `([a-z]+\.[a-z_]+)` \|", page, re.MULTILINE)
    named = re.findall(r"^## `\[([a-z]+)\.NAME\]`$", page, re.MULTILINE)
    assert [*documented, *named] == [key for key, _ in key_schemas()]
