"""The draw of messages and docstrings for a reader who has not seen the repository."""

import pytest

import samples


def test_a_seed_draws_the_same_blocks_and_another_seed_draws_others() -> None:
    assert samples.draw(1, 6) == samples.draw(1, 6) != samples.draw(2, 6)


def test_the_blocks_are_numbered_with_nothing_around_them(capsys: pytest.CaptureFixture[str]) -> None:
    assert samples.main(["1", "6"]) == 0
    blocks = samples.draw(1, 6)
    assert len(blocks) == 12
    assert capsys.readouterr().out == "\n\n".join(f"{at}.\n{text}" for at, text in enumerate(blocks, 1)) + "\n"


def test_messages_are_answers_helps_and_texts_of_errors_without_their_code() -> None:
    assert any(text.startswith("**WORKFLOW_NOT_FOUND**") for text in samples.answers())
    assert any("**Not accepted yet**" in text for text in samples.answers())
    assert any(text.startswith("usage: interlock session export") for text in samples.helps())
    assert any(one.endswith("\nName one that exists.") for one in samples.messages())
    assert [text for text in samples.messages() if 'f"' in text or "printable_line" in text] == []


def test_a_text_that_is_set_on_another_line_is_part_of_its_message() -> None:
    cause = "No step asks for the assessment <id>.\n"
    assert [text for text in samples.messages() if text.startswith(cause) and text != cause]


def test_every_command_says_in_a_sentence_what_it_does_and_describes_each_argument() -> None:
    for text in samples.helps():
        _, described, *sections = text.split("\n\n")
        assert described.endswith(".")
        lines = "\n".join(sections).splitlines()
        heads = [at for at, line in enumerate(lines) if line.startswith("  ") and not line.startswith("   ")]
        bare = [lines[at] for at in heads if "  " not in lines[at].strip() and at + 1 in {*heads, len(lines)}]
        assert bare == []


def test_docstrings_come_with_their_signature_alone() -> None:
    blocks = samples.docstrings()
    assert "def utf8_bytes(text: str) -> int\n" in "".join(block for block in blocks if "utf8_bytes(" in block)
    assert [block for block in blocks if not block.startswith(("def ", "class "))] == []
    assert [block for block in blocks if "return len(" in block] == []
