"""What the guest's kernel said, and whether it complained."""

import re
from collections import deque

# "Oops" is missing from what 6.1 prints for a general protection fault, "[#1]" is not.
_COMPLAINT = re.compile(
    r"\bOops\b|BUG:|WARNING:|\bstall(?:s|ed)?\b|\[#\d+\]|\bKernel panic\b"
)

TAIL_LINES = 40
COMPLAINT_LINES = 80


class Console:
    """Takes the console in pieces. Memory is bounded, however much the guest prints."""

    def __init__(self, follow=None):
        self._follow = follow
        self._open_line = b""
        self._tail = deque(maxlen=TAIL_LINES)
        self._line_count = 0
        self._first_complaint = 0
        self._complaints = []  # from the first one on, with what follows
        self.complaint_count = 0

    def feed(self, data):
        if self._follow:
            self._follow(data)
        *lines, self._open_line = (self._open_line + data).split(b"\n")
        for line in lines:
            self._add(line)

    def close(self):
        """A panic may end the guest in the middle of a line."""
        if self._open_line:
            self._add(self._open_line)
        self._open_line = b""

    def excerpt(self):
        """From the first complaint on, or else the end; long texts lose their middle."""
        if not self.complaint_count:
            return list(self._tail)
        missing = self._line_count - self._first_complaint - len(self._complaints)
        if missing > TAIL_LINES:
            return [*self._complaints, "[...]", *self._tail]
        return self._complaints + list(self._tail)[len(self._tail) - missing :]

    def _add(self, raw):
        line = raw.decode(errors="replace").rstrip("\r")
        self._tail.append(line)
        if _COMPLAINT.search(line):
            if not self.complaint_count:
                self._first_complaint = self._line_count
            self.complaint_count += 1
        self._line_count += 1
        if self.complaint_count and len(self._complaints) < COMPLAINT_LINES:
            self._complaints.append(line)
