/// How many connections and streams there are.
package struct ConnectionReport: Sendable, Equatable {
    /// One connection that is open.
    package struct Connection: Sendable, Equatable {
        /// The connection's number, as in the journal; counted from 1 and never reused.
        package let id: Int

        /// `h2` or `http/1.1`.
        package let protocolName: String

        /// Streams open now; always 0 with HTTP/1.1.
        package internal(set) var streams = 0

        /// Most streams that were open at once.
        package internal(set) var maxStreams = 0

        /// Whether GOAWAY was said.
        package internal(set) var isGoingAway = false

        init(id: Int, protocolName: String) {
            self.id = id
            self.protocolName = protocolName
        }
    }

    /// Connections accepted since the start, or since everything was forgotten.
    package let accepted: Int

    /// Connections that are open, oldest first; one counts as soon as its protocol is known.
    package let connections: [Connection]

    /// Streams open now, on all connections.
    package let streams: Int

    /// Most streams that were open at once, on all connections together.
    package let maxStreams: Int

    /// Most streams that were open at once on any single connection, closed ones included.
    package let maxStreamsPerConnection: Int
}

extension ConnectionReport: Encodable {
    private enum CodingKeys: String, CodingKey {
        case accepted, connections, streams
        case maxStreams = "max_streams"
        case maxStreamsPerConnection = "max_streams_per_connection"
    }
}

extension ConnectionReport.Connection: Encodable {
    private enum CodingKeys: String, CodingKey {
        case id, streams
        case protocolName = "protocol"
        case maxStreams = "max_streams"
        case isGoingAway = "going_away"
    }
}
