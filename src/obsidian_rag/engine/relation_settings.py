"""Changes of the settings about related notes, for doors in which a person sets them."""

import threading
from collections.abc import Mapping

from obsidian_rag.config import put_value, read_file, save, setting_names
from obsidian_rag.engine.engine import Engine
from obsidian_rag.errors import ConfigInvalid, InvalidArgument

_SECTION = "relations"
# Two changes at once would each write the file without the other's.
_writing = threading.Lock()


def change_relation_settings(engine: Engine, changes: Mapping[str, object]) -> None:
    """Write these settings of the section `relations` to the config file; None is the default.

    Raises:
        InvalidArgument: a name or a value is wrong; nothing is written.
        ConfigInvalid: the config file cannot be used as it is.
    """
    file = engine.config.file
    known = [n.partition(".")[2] for n in setting_names() if n.startswith(f"{_SECTION}.")]
    with _writing:
        tree = read_file(file)
        for name, value in changes.items():
            if name not in known:
                raise InvalidArgument(
                    f"There is no setting '{_SECTION}.{name[:60]}'.",
                    f"The settings are: {', '.join(known)}.",
                )
            put_value(tree, f"{_SECTION}.{name}", value)
            if value is None:
                del tree[_SECTION][name]
        try:
            save(tree, file)
        except ConfigInvalid as error:
            raise InvalidArgument(error.message, error.suggestion) from error
    engine.follow_settings()
