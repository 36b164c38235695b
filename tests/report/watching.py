"""What Firefox tells of the pages that it shows: what they ask for, and what goes wrong in them."""

from __future__ import annotations

from typing import Any

import pytest

# Marks of tests that drive it, which leaves the sockets open with which it waits for the browser.
WITH_FIREFOX = [
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
# In the process of the browser: errors of pages, refusals of their policy among them, and what
# pages ask for.
WATCH = """
    Services.console.reset();
    window.asked = [];
    Services.obs.addObserver((channel) => {
        const { loadInfo, URI } = channel.QueryInterface(Ci.nsIChannel);
        if (loadInfo.triggeringPrincipal.schemeIs("file")) window.asked.push(URI.spec);
    }, "http-on-opening-request");
"""
COMPLAINTS = """
    const errors = Services.console.getMessageArray().filter((one) =>
        one instanceof Ci.nsIScriptError && /^(file|data|blob):/.test(one.sourceName));
    return [...window.asked, ...errors.map((one) => one.errorMessage)];
"""


def watched(firefox: Any, script: str) -> Any:
    with firefox.using_context("chrome"):
        return firefox.execute_script(script, sandbox=None)
