import Testing

@testable import FCMGateway

struct AuditTrailTests {
    private static func record(_ seq: Int, writer: String = "w") -> JSONValue {
        .object(["writer": .string(writer), "seq": .integer(seq), "note": .string("at \(seq)")])
    }

    @Test("No record is given out twice, also when it arrives below a newer one")
    func unseen() {
        var trail = AuditTrail()
        #expect(trail.unseen([Self.record(3), Self.record(1)]) == [Self.record(1), Self.record(3)])
        #expect(trail.unseen([Self.record(4), Self.record(3), Self.record(2)]) == [Self.record(2), Self.record(4)])
        #expect(trail.unseen([Self.record(4)]) == [])
        #expect(trail.unseen([Self.record(4, writer: "v")]) == [Self.record(4, writer: "v")])
    }

    @Test("Records without a number are told apart by their content")
    func withoutNumber() {
        var trail = AuditTrail()
        let first = JSONValue.object(["time": .string("a")])
        let second = JSONValue.object(["time": .string("b")])
        #expect(trail.unseen([first]) == [first])
        #expect(trail.unseen([second, first]) == [second])
    }

    @Test("Only the newest records are remembered")
    func bounded() {
        var trail = AuditTrail()
        _ = trail.unseen([Self.record(0)])
        _ = trail.unseen((1...AuditTrail.maxRemembered).reversed().map { Self.record($0) })
        #expect(trail.unseen([Self.record(1)]) == [])
        #expect(trail.unseen([Self.record(0)]) == [Self.record(0)])
    }

    @Test("A table shows the usual members that occur, or else all")
    func columns() {
        #expect(AuditTrail.columns(of: [Self.record(1), .object(["tenant": .null])]) == ["seq", "tenant"])
        #expect(AuditTrail.columns(of: [.object(["b": .null, "a": .null])]) == ["a", "b"])
    }
}
