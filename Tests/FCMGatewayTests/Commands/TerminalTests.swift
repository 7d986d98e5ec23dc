import Testing

@testable import FCMGateway

struct TerminalTests {
    @Test(
        "Colours are for terminals that can show them, unless variables say otherwise",
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

    @Test("A table's colours change neither its text nor its columns")
    func table() throws {
        let rows = [["status": "accepted", "token": "a"], ["status": "rejected", "token": "b"]]
            .map { JSONValue.object($0.mapValues(JSONValue.string)) }
        let table = TextTable(columns: ["status", "token"], objects: rows)
        #expect(table.text == "STATUS    TOKEN\naccepted  a\nrejected  b")
        #expect(
            table.styled.coloured == "STATUS    TOKEN\n\u{1B}[32maccepted\u{1B}[0m  a\n\u{1B}[31mrejected\u{1B}[0m  b"
        )
        // An answer can't bring a colour of its own.
        let hostile = TextTable(columns: ["status"], objects: [.object(["status": "\u{1B}[31mx"])])
        #expect(hostile.styled.coloured == "STATUS\n\\u{1b}[31mx")
    }
}
