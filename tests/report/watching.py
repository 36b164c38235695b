"""Watch pages in Firefox: their requests and their errors."""

from typing import Any

import pytest

# Pytest marks for tests that drive Firefox: the driver leaves sockets open after waiting.
WITH_FIREFOX = [
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
# Scripts for the browser's own process: WATCH records the requests of a page; COMPLAINTS returns
# them and the page's errors, including violations of its content security policy.
WATCH = """
    Services.console.reset();
    window.requested = [];
    Services.obs.addObserver((channel) => {
        const { loadInfo, URI } = channel.QueryInterface(Ci.nsIChannel);
        if (loadInfo.triggeringPrincipal.schemeIs("file")) window.requested.push(URI.spec);
    }, "http-on-opening-request");
"""
COMPLAINTS = """
    const errors = Services.console.getMessageArray().filter((one) =>
        one instanceof Ci.nsIScriptError && /^(file|data|blob):/.test(one.sourceName));
    return [...window.requested, ...errors.map((one) => one.errorMessage)];
"""


def watched(firefox: Any, script: str) -> Any:
    with firefox.using_context("chrome"):
        return firefox.execute_script(script, sandbox=None)
