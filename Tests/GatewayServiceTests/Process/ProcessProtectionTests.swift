import Testing

@testable import GatewayService

struct ProcessProtectionTests {
    @Test(
        "Backtraces print no memory, whatever was chosen, and the program starts anew once at most",
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
