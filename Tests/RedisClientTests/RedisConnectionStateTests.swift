import NIOCore
import Testing

@testable import RedisClient

@Suite("RedisConnectionState")
struct RedisConnectionStateTests {
    private typealias State = RedisConnectionState<Int>

    private static func state(
        user: String? = nil,
        password: String? = nil,
        database: Int = 0,
        service: String? = nil,
        maxCalls: Int = 10
    ) -> State {
        State(
            State.Introduction(user: user, password: password, name: "test", database: database, service: service),
            maxCalls: maxCalls
        )
    }

    static func server(_ mode: String = "standalone", role: String = "master") -> RESPValue {
        .map(["mode", mode, "role", role].map { RESPValue.bytes(Array($0.utf8)) })
    }

    /// Describes an action; a command is written as its words, separated by spaces.
    private static func text(_ action: State.Action) -> String {
        switch action {
        case .nothing: "nothing"
        case .write(let command): self.text(command)
        case .ready: "ready"
        case .discovered(let endpoint): "discovered \(endpoint)"
        case .deliver(let call, _): "deliver \(call)"
        case .deliverAndClose(let call, _, let error): "deliver \(call), close \(error.code)"
        case .close(let error): "close \(error.code)"
        }
    }

    private static func text(_ command: RedisCommand) -> String {
        String(buffer: command.bytes).split(separator: "\r\n").filter { !$0.hasPrefix("$") && !$0.hasPrefix("*") }
            .joined(separator: " ")
    }

    /// A connection that is ready, with these calls sent.
    private static func ready(_ calls: Int...) -> State {
        var state = Self.state()
        _ = state.opened()
        _ = state.received(Self.server())
        for call in calls { _ = state.submit(call) }
        return state
    }

    @Test("The connection sends HELLO and SELECT before it accepts calls")
    func hello() {
        var state = Self.state(user: "fcm", password: "secret", database: 2)
        #expect(state.submit(1) == false)
        #expect(Self.text(state.opened()) == "HELLO 3 AUTH fcm secret SETNAME test")
        #expect(state.submit(1) == false)
        #expect(Self.text(state.received(Self.server())) == "SELECT 2")
        #expect(Self.text(state.received(.status("OK"))) == "ready")
        #expect(state.submit(1) == true)
        #expect(state.oldestCall == 1)
    }

    @Test("The connection falls back to RESP2 if the server rejects HELLO")
    func versionTwo() {
        var state = Self.state(password: "secret")
        #expect(Self.text(state.opened()) == "HELLO 3 AUTH default secret SETNAME test")
        #expect(Self.text(state.received(.error("ERR unknown command `HELLO`"))) == "AUTH secret")
        #expect(Self.text(state.received(.status("OK"))) == "CLIENT SETNAME test")
        #expect(Self.text(state.received(.error("ERR unknown command"))) == "ready")
        var open = Self.state()
        _ = open.opened()
        #expect(Self.text(open.received(.error("NOPROTO unsupported"))) == "CLIENT SETNAME test")
    }

    @Test(
        "The connection to an unusable server is closed with the matching error code",
        arguments: [
            (RedisConnectionStateTests.server("cluster"), "close clusterNode"),
            (RedisConnectionStateTests.server("sentinel"), "close unusableServer"),
            (RedisConnectionStateTests.server(role: "replica"), "close unusableServer"),
            (.error("WRONGPASS invalid username-password pair"), "close authenticationFailed"),
            (.error("NOAUTH HELLO must be called with the client already authenticated"), "close authenticationFailed"),
            (.error("DENIED Redis is running in protected mode"), "close unusableServer"),
        ] as [(RESPValue, String)]
    )
    func refused(reply: RESPValue, action: String) {
        var state = Self.state()
        _ = state.opened()
        #expect(Self.text(state.received(reply)) == action)
    }

    @Test(
        "A missing password and a wrong password have different error messages",
        arguments: [
            (nil, "The server asks for a password, and none is configured"),
            ("wrong", "The server refuses the user or the password"),
        ] as [(String?, String)]
    )
    func password(_ password: String?, message: String) {
        for reply in ["NOAUTH Authentication required.", "WRONGPASS invalid username-password pair"] {
            var state = Self.state(password: password)
            _ = state.opened()
            guard case .close(let error) = state.received(.error(reply)) else {
                Issue.record("not refused: \(reply)")
                continue
            }
            #expect(error.message == message)
        }
    }

    @Test("A Sentinel connection asks only for the master's address, and closes if the reply has none")
    func sentinel() {
        func answer(_ value: RESPValue) -> String {
            var state = Self.state(password: "secret", service: "mymaster")
            #expect(Self.text(state.opened()) == "SENTINEL GET-MASTER-ADDR-BY-NAME mymaster")
            return Self.text(state.received(value))
        }
        func bytes(_ text: String) -> RESPValue { .bytes(Array(text.utf8)) }
        #expect(answer(.array([bytes("10.0.0.1"), bytes("6379")])) == "discovered 10.0.0.1:6379")
        for value in [.null, .array([]), .array([bytes("a"), bytes("0")]), .status("OK")] as [RESPValue] {
            #expect(answer(value) == "close unavailable")
        }
    }

    @Test("Replies are delivered in order, pushes are ignored, and a surplus reply closes the connection")
    func order() {
        var state = Self.ready(1, 2)
        #expect(Self.text(state.received(.integer(1))) == "deliver 1")
        #expect(Self.text(state.received(.push([.status("invalidate")]))) == "nothing")
        #expect(state.submit(3) == true)
        #expect(Self.text(state.received(.error("ERR wrong"))) == "deliver 2")
        #expect(Self.text(state.received(.null)) == "deliver 3")
        #expect(Self.text(state.received(.null)) == "close invalidReply")
    }

    @Test(
        "An error that makes the server unusable is delivered and closes the connection",
        arguments: [
            ("READONLY You can't write against a read only replica.", "unusableServer"),
            ("MOVED 3999 127.0.0.1:6381", "clusterNode"), ("LOADING Redis is loading", "unusableServer"),
            ("NOAUTH Authentication required.", "authenticationFailed"),
        ]
    )
    func otherServer(error: String, code: String) {
        var state = Self.ready(1, 2)
        #expect(Self.text(state.received(.error(error))) == "deliver 1, close \(code)")
        #expect(state.close() == [2])
        #expect(state.submit(3) == false)
        #expect(Self.text(state.received(.null)) == "nothing")
    }

    @Test("At most maxCalls calls wait, and thousands of calls stay in order")
    func many() {
        var state = Self.state(maxCalls: 3)
        _ = state.opened()
        _ = state.received(Self.server())
        #expect((1...4).map { state.submit($0) } == [true, true, true, false])
        for call in 1...5_000 {
            #expect(Self.text(state.received(.null)) == "deliver \(call)")
            #expect(state.submit(call + 3) == true)
        }
        #expect(state.close() == [5_001, 5_002, 5_003])
    }
}
