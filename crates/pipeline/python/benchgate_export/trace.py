"""What an export read: every file that Python opened or imported, every folder that it listed, and whether the model did
something that leaves no trace. An export may only be reused while all of that is as it was.

Heard through the interpreter's audit events, so that it does not matter which library opened the file. A library of native
code that opens files by itself is not heard; where the kernel allows it, the driver observes those, too."""

from __future__ import annotations

import importlib
import os
import stat
import sys
import sysconfig

# What a model may do that no list of files describes.
OPAQUE = {
    "subprocess.Popen": "starts a program",
    "os.system": "starts a program",
    "os.exec": "starts a program",
    "os.posix_spawn": "starts a program",
    "os.spawn": "starts a program",
    "os.fork": "forks",
    "socket.connect": "opens a network connection",
}
# Variables that are the same in every export, because this package sets them. argparse reads them all.
FIXED = {"COLUMNS": "80", "LINES": "24", "LANGUAGE": "C", "LC_ALL": "C.UTF-8", "LC_MESSAGES": "C.UTF-8", "LANG": "C.UTF-8"}
# Not content: the kernel's own files.
KERNEL = ("/proc/", "/sys/", "/dev/")


_stat = os.stat
# Files that models of this interpreter made, which did not exist before.
_made: set[str] = set()


def _exists(path: str) -> bool:
    try:
        _stat(path)
    except (OSError, ValueError):
        return False
    return True


def _is_folder(path: str) -> bool:
    try:
        return stat.S_ISDIR(_stat(path).st_mode)
    except (OSError, ValueError):
        return False


def _prefixes(*folders: str) -> tuple[str, ...]:
    both = {os.path.abspath(folder) for folder in folders} | {os.path.realpath(folder) for folder in folders}
    return tuple(sorted(folder + os.sep for folder in both))


_PATHS = sysconfig.get_paths()
STANDARD = _prefixes(_PATHS["stdlib"], _PATHS["platstdlib"])
# Folders of packages that the driver adds: what the suite asks for, and runtimes of other backends.
PACKAGES = [folder for folder in os.environ.get("BENCHGATE_PACKAGES", "").split(os.pathsep) if folder]
INSTALLED = _prefixes(_PATHS["purelib"], _PATHS["platlib"], *PACKAGES)
# The locked environment, and the folder that holds this package alone. Not the whole prefix: sources may lie below /usr.
ENVIRONMENT = STANDARD + INSTALLED + _prefixes(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


# The name that ends a section of what the driver observes, if it observes anything.
_END_OF_SECTION = os.environ.get("BENCHGATE_END_OF_SECTION")


def end_section() -> None:
    """Says that an answer follows: what is opened from now on belongs to the next request."""
    if _END_OF_SECTION:
        _exists(_END_OF_SECTION)


def of_environment(path: str) -> bool:
    return path.startswith(ENVIRONMENT)


class Trace:
    """The trace of one request; folders that the driver itself made are left out."""

    def __init__(self, own: tuple[str, ...] = ()):
        self.files: set[str] = set()
        self.absent: set[str] = set()
        self.folders: set[str] = set()
        self.opaque: str | None = None
        self._own = tuple(os.path.abspath(folder) + os.sep for folder in own)

    def _path(self, value) -> str | None:
        if isinstance(value, bytes):
            value = os.fsdecode(value)
        elif isinstance(value, os.PathLike):
            value = os.fspath(value)
        if not isinstance(value, str):
            return None  # a descriptor: what it stands for was heard when it was opened
        path = os.path.abspath(value)
        if path.startswith(KERNEL):
            # `/proc/self/root/…` and `/dev/shm/…` are ordinary files.
            path = os.path.realpath(path)
        inside = path + os.sep
        kernels = path.startswith(KERNEL) and not path.startswith("/dev/shm/")
        if kernels or inside.startswith(ENVIRONMENT) or inside.startswith(self._own):
            return None
        return path

    def note(self, path: str) -> None:
        """Notes a file that is about to be read, or looked for. What does not exist yet may be made by the model itself."""
        if path not in self.files and (path in _made or not _exists(path)):
            self.absent.add(path)
        self.files.add(path)

    def hear(self, event: str, arguments: tuple) -> None:
        if event == "open":
            path, mode, flags = arguments
            writes_only = isinstance(flags, int) and flags & os.O_ACCMODE == os.O_WRONLY and not flags & os.O_APPEND
            found = self._path(path)
            if found and writes_only and found not in self.files and not _exists(found):
                _made.add(found)
            elif found and not writes_only:
                self.note(found)
        elif event == "os.rename":
            found = self._path(arguments[1])
            if found and found not in self.files and not _exists(found):
                _made.add(found)
        elif event in ("os.listdir", "os.scandir"):
            if found := self._path("." if arguments[0] is None else arguments[0]):
                self.folders.add(found)
        elif event == "import" or event == "ctypes.dlopen":
            # Python's own files are opened; a library of native code is loaded.
            name = arguments[1] if event == "import" else arguments[0]
            if isinstance(name, str) and os.sep in name and (found := self._path(name)):
                self.note(found)
        elif event in OPAQUE and _is_of_the_model():
            self.opaque = self.opaque or OPAQUE[event]

    def answer(self) -> dict:
        return {
            "read": sorted(self.files),
            "absent": sorted(self.absent),
            "listed": sorted(self.folders),
            "opaque": self.opaque,
            "environment": sorted({*ENVIRONMENT, sys.prefix, sys.base_prefix, os.path.realpath(sys.base_prefix)}),
        }


def _is_of_the_model() -> bool:
    """Whether the first caller outside the standard library is the model's code, not a library of the environment."""
    frame = sys._getframe()
    while frame is not None:
        path = frame.f_code.co_filename
        of_standard_library = path.startswith(STANDARD) and not path.startswith(INSTALLED)
        in_between = path.startswith("<frozen") or of_standard_library or path == __file__
        if not in_between:
            return not of_environment(path)
        frame = frame.f_back
    return False


_current: Trace | None = None
_installed = False


class _Environ(os._Environ):
    """os.environ, which says when the model reads it."""

    def __getitem__(self, key):
        if key not in FIXED and _current is not None and _current.opaque is None and _is_of_the_model():
            _current.opaque = f"reads the environment variable {key}"
        return super().__getitem__(key)

    def __iter__(self):
        if _current is not None and _current.opaque is None and _is_of_the_model():
            _current.opaque = "reads all environment variables"
        return super().__iter__()


def _hook(event: str, arguments: tuple) -> None:
    trace = _current
    if trace is None:
        return
    try:
        trace.hear(event, arguments)
    except Exception as e:  # an audit hook that raises would stop the model
        trace.opaque = trace.opaque or f"can't be followed: {type(e).__name__}: {e}"


class _Look:
    """os.stat or os.access, which notes a file for whose existence the model looks without opening it. No function, which would
    be a method where a class has it as an attribute."""

    def __init__(self, usual):
        self._usual = usual

    def __call__(self, path, *arguments, **options):
        if _current is not None and options.get("dir_fd") is None and _is_of_the_model():
            found = _current._path(path)
            if found and not _is_folder(found):
                _current.note(found)
        return self._usual(path, *arguments, **options)


def _source_only(usual):
    """importlib's cache_from_source for a model's modules, which are compiled anew: a compiled file next to a source may be one
    of another source."""

    def cache_from_source(path, *arguments, **options):
        if not of_environment(os.path.abspath(path)):
            raise NotImplementedError("compiled from its source")
        return usual(path, *arguments, **options)

    return cache_from_source


def begin(own: tuple[str, ...] = ()) -> Trace:
    """Starts to listen for one request."""
    global _current, _installed
    if not _installed:
        sys.addaudithook(_hook)
        os.environ.__class__ = _Environ
        for name in ("access", "stat"):
            usual = getattr(os, name)
            look = _Look(usual)
            for supported in (os.supports_dir_fd, os.supports_effective_ids, os.supports_fd, os.supports_follow_symlinks):
                if usual in supported:
                    supported.add(look)
            setattr(os, name, look)
        loaders = importlib._bootstrap_external
        loaders.cache_from_source = _source_only(loaders.cache_from_source)
        _installed = True
    _current = Trace(own)
    return _current


def end() -> None:
    global _current
    _current = None
