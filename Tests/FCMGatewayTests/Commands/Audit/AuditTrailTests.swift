import StrictJSON
import Testing

@testable import FCMGateway
@testable import GatewayService

struct AuditTrailTests {
    private static func record(_ seq: Int, writer: String = "w") throws -> JSONValue {
        try JSONValue(parsing: #"{"writer":"\#(writer)","seq":\#(seq),"note":"at \#(seq)"}"#)
    }

    private static func unseen(_ trail: inout AuditTrail, _ page: [JSONValue]) -> [Int?] {
        trail.unseen(page).map { $0.integer("seq") }
    }

    @Test("Each record is returned once, also one that appears later below a newer record")
    func unseen() throws {
        var trail = AuditTrail()
        #expect(Self.unseen(&trail, [try Self.record(3), try Self.record(1)]) == [1, 3])
        #expect(Self.unseen(&trail, [try Self.record(4), try Self.record(3), try Self.record(2)]) == [2, 4])
        #expect(Self.unseen(&trail, [try Self.record(4)]) == [])
        #expect(Self.unseen(&trail, [try Self.record(4, writer: "v")]) == [4])
    }

    @Test("Records without a number are distinguished by their content")
    func withoutNumber() throws {
        var trail = AuditTrail()
        let first = try JSONValue(parsing: #"{"time":"a"}"#)
        let second = try JSONValue(parsing: #"{"time":"b"}"#)
        #expect(trail.unseen([first]).map { $0.text("time") } == ["a"])
        #expect(trail.unseen([second, first]).map { $0.text("time") } == ["b"])
    }

    @Test("Only the newest records are remembered")
    func bounded() throws {
        var trail = AuditTrail()
        _ = trail.unseen([try Self.record(0)])
        _ = trail.unseen(try (1...AuditTrail.maxRemembered).reversed().map { try Self.record($0) })
        #expect(Self.unseen(&trail, [try Self.record(1)]) == [])
        #expect(Self.unseen(&trail, [try Self.record(0)]) == [0])
    }

    @Test("A table has the known columns that occur, or all members if none does")
    func columns() throws {
        let tenant = try JSONValue(parsing: #"{"tenant":null}"#)
        #expect(AuditTrail.columns(of: [try Self.record(1), tenant]) == ["seq", "tenant"])
        #expect(AuditTrail.columns(of: [try JSONValue(parsing: #"{"b":null,"a":null}"#)]) == ["a", "b"])
    }
}
