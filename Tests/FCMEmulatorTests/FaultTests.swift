import Testing

@testable import FCMEmulator

@Suite("Fault from JSON")
struct FaultTests {
    private static func read(_ text: String) throws -> Fault {
        try Fault(members: ControlMembers(body: Array(text.utf8)))
    }

    @Test(
        "Complete bodies are read",
        arguments: [
            (#"{"action":{"type":"hang"}}"#, Fault(action: .hang)),
            (#"{"action":{"type":"goaway"}}"#, Fault(action: .goAway(isRefused: false))),
            (#"{"action":{"type":"goaway","refuse":true}}"#, Fault(action: .goAway(isRefused: true))),
            (#"{"action":{"type":"refuse"}}"#, Fault(action: .refuse)),
            (#"{"action":{"type":"status","status":502,"html":true}}"#, Fault(action: .page(502))),
            (#"{"action":{"type":"reset"},"times":3}"#, Fault(times: 3, action: .reset)),
            (#"{"action":{"type":"garbage"},"match":{}}"#, Fault(action: .garbage)),
            (#"{"action":{"type":"truncate"},"match":{"token":"t"}}"#, Fault(token: "t", action: .truncate)),
            (
                #"{"match":{"path":"/fcm/send"},"times":1,"action":{"type":"delay","ms":250}}"#,
                Fault(path: "/fcm/send", action: .delay(.milliseconds(250)))
            ),
            (
                #"{"action":{"type":"status","status":503,"body":"x","headers":{"Retry-After":"7"}}}"#,
                Fault(action: .status(503, body: "x", headers: [HeaderField(name: "Retry-After", value: "7")]))
            ),
        ]
    )
    func read(text: String, expected: Fault) throws {
        #expect(try Self.read(text) == expected)
    }

    @Test(
        "Wrong bodies are refused with the member's name",
        arguments: [
            (#"{"times":1}"#, "action is missing"),
            (#"{"action":{}}"#, "action.type must be delay, hang, reset, status, garbage, truncate, goaway or refuse"),
            (#"{"action":{"type":"goaway","refuse":1}}"#, "action.refuse must be true or false"),
            (#"{"action":{"type":"refuse","times":1}}"#, "unknown member action.times"),
            (
                #"{"action":{"type":"status","status":502,"html":true,"body":"x"}}"#,
                "action.html creates the body itself"
            ),
            (#"{"action":{"type":"delay"}}"#, "action.ms is missing"),
            (#"{"action":{"type":"delay","ms":-1}}"#, "action.ms must be an integer in 0 to 3600000"),
            (#"{"action":{"type":"hang","ms":1}}"#, "unknown member action.ms"),
            (#"{"action":{"type":"status"}}"#, "action.status is missing"),
            (#"{"action":{"type":"status","status":204,"body":""}}"#, "an answer with status 204 has no body"),
            (
                #"{"action":{"type":"status","status":200,"headers":{"a b":"c"}}}"#,
                "action.headers.a b is not a valid header field"
            ),
            (
                #"{"action":{"type":"status","status":200,"headers":{"Content-Length":"9"}}}"#,
                "action.headers.Content-Length cannot be scripted; see truncate"
            ),
            (#"{"action":{"type":"hang"},"times":0}"#, "times must be an integer in 1 to 1000000000"),
            (#"{"action":{"type":"hang"},"times":"2"}"#, "times must be an integer in 1 to 1000000000"),
            (#"{"action":{"type":"hang"},"match":{"paht":"x"}}"#, "unknown member match.paht"),
            (#"{"action":{"type":"hang"},"match":[]}"#, "match must be an object"),
            (#"{"action":{"type":"hang"},"match":{"token":1}}"#, "match.token must be a string"),
        ]
    )
    func refused(text: String, message: String) {
        #expect(throws: ControlError.badRequest(message)) { try Self.read(text) }
    }
}

@Suite("FaultScript")
struct FaultScriptTests {
    @Test("Faults are played in order, each as often as it specifies")
    func times() {
        var script = FaultScript()
        script.add(Fault(times: 2, action: .reset))
        script.add(Fault(action: .hang))
        let actions = (1...4).map { _ in script.take(path: "/x", tokens: []) }
        #expect(actions == [.reset, .reset, .hang, nil])
        #expect(script.isEmpty)
    }

    @Test("A fault matches only requests with its path and token")
    func match() {
        var script = FaultScript()
        #expect(!script.looksAtTokens)
        script.add(Fault(path: "/fcm/send", token: "b", action: .garbage))
        #expect(script.looksAtTokens)
        #expect(script.take(path: "/other", tokens: ["b"]) == nil)
        #expect(script.take(path: "/fcm/send", tokens: ["a"]) == nil)
        #expect(script.take(path: "/fcm/send", tokens: ["a", "b"]) == .garbage)
    }
}
