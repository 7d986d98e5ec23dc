package import HTTPTypes
import NIOCore

/// The field lines of a message to be sent, written once and copied into its head.
///
/// Fields that frame the message are left out: the writer of the message sets them itself.
package struct HTTPHeaderLines: Sendable {
    private(set) var bytes: [UInt8] = []

    /// No lines.
    package init() {
        self.bytes.reserveCapacity(224)
    }

    /// The lines of fields, in their order.
    package init(_ fields: HTTPFields) {
        self.init()
        for field in fields {
            self.append(HTTPFieldKey(field.name), field.value)
        }
    }

    /// Adds a line.
    ///
    /// - Parameters:
    ///   - key: the field's name.
    ///   - value: its value; a control character in it is sent as a space, so that no value can end its line.
    package mutating func append(_ key: HTTPFieldKey, _ value: String) {
        self.append(key, Array(value.utf8))
    }

    /// Adds a line whose value is given as bytes.
    ///
    /// - Parameters:
    ///   - key: the field's name.
    ///   - value: the bytes of its value; a control character among them is sent as a space.
    package mutating func append(_ key: HTTPFieldKey, _ value: [UInt8]) {
        guard !key.framesMessage else { return }
        self.bytes.append(contentsOf: key.lineStart)
        if value.allSatisfy(HTTPGrammar.isText) {
            self.bytes.append(contentsOf: value)
        } else {
            self.bytes.append(contentsOf: value.map { HTTPGrammar.isText($0) ? $0 : HTTPGrammar.space })
        }
        self.bytes.append(HTTPGrammar.carriageReturn)
        self.bytes.append(HTTPGrammar.lineFeed)
    }

    /// Calls a closure with the name and the value of each line.
    func forEachLine(_ body: (_ name: ArraySlice<UInt8>, _ value: ArraySlice<UInt8>) -> Void) {
        var start = self.bytes.startIndex
        while let colon = self.bytes[start...].firstIndex(of: UInt8(ascii: ":")),
            let end = self.bytes[colon...].firstIndex(of: HTTPGrammar.carriageReturn)
        {
            // A space follows the colon, and a line feed the carriage return.
            body(self.bytes[start..<colon], self.bytes[(colon + 2)..<end])
            start = end + 2
        }
    }

    /// The lines in the form that HTTPTypes gives them.
    package var fields: HTTPFields {
        var fields = HTTPFields()
        self.forEachLine { name, value in
            // Never nil: a line begins with a key's name.
            guard let name = HTTPField.Name(String(decoding: name, as: UTF8.self)) else { return }
            fields.append(HTTPField(name: name, value: String(decoding: value, as: UTF8.self)))
        }
        return fields
    }
}

extension HTTPHeaderLines: ExpressibleByDictionaryLiteral {
    /// The lines of some names and values.
    package init(dictionaryLiteral elements: (HTTPField.Name, String)...) {
        self.init()
        for (name, value) in elements {
            self.append(HTTPFieldKey(name), value)
        }
    }
}
