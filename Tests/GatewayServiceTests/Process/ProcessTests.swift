import Testing

@testable import GatewayService

struct ProcessProtectionTests {
    @Test(
        "Backtrace settings always end with no registers and no interaction, and need one restart at most",
        arguments: [
            (nil, "registers=none,interactive=no"),
            ("", "registers=none,interactive=no"),
            ("enable=yes,registers=all", "enable=yes,registers=all,registers=none,interactive=no"),
            ("enable=no", "enable=no,registers=none,interactive=no"),
            (
                "registers=none,interactive=no,registers=all",
                "registers=none,interactive=no,registers=all,registers=none,interactive=no"
            ),
        ] as [(String?, String)]
    )
    func settings(current: String?, expected: String) {
        #expect(ProcessProtection.settings(instead: current) == expected)
        #expect(ProcessProtection.settings(instead: expected) == nil)
    }
}

struct TerminalTests {
    @Test(
        "Terminals that support colours get them, unless variables decide otherwise",
        arguments: [
            (true, ["TERM": "xterm"], true), (true, [:], false), (true, ["TERM": "dumb"], false),
            (false, ["TERM": "xterm"], false), (true, ["TERM": "xterm", "NO_COLOR": "1"], false),
            (true, ["TERM": "xterm", "NO_COLOR": ""], true), (false, ["CLICOLOR_FORCE": "1"], true),
            (false, ["CLICOLOR_FORCE": "0"], false), (false, ["CLICOLOR_FORCE": ""], false),
            (false, ["CLICOLOR_FORCE": "1", "NO_COLOR": "1"], false),
            (true, ["TERM": "xterm", "CLICOLOR": "0"], false),
        ] as [(Bool, [String: String], Bool)]
    )
    func colours(isTerminal: Bool, environment: [String: String], shows: Bool) {
        #expect(Terminal(isTerminal: isTerminal, environment: environment).showsColour == shows)
    }
}
