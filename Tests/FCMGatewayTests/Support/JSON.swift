import NIOCore
import StrictJSON

@testable import FCMGateway

extension JSONValue {
    /// The value of a text.
    init(parsing text: String) throws {
        self = try JSONDocument(parsing: ByteBuffer(string: text), limits: .trusted).root
    }
}
