//! Tags of the fields that sessions and orders use, in the names of the FIX specification.
//!
//! Any other tag is a plain number, or comes by its name from the dictionary.

/// Number of a field: 1 to 999,999,999. Custom tags above 16 bits are in use at venues.
pub type Tag = u32;

macro_rules! tags {
    ($($name:ident = $number:literal, $field:literal;)*) => {
        $(
            #[doc = concat!("Tag of ", $field, " (", stringify!($number), ").")]
            pub const $name: Tag = $number;
        )*
    };
}

tags! {
    ACCOUNT = 1, "Account";
    AVG_PX = 6, "AvgPx";
    BEGIN_SEQ_NO = 7, "BeginSeqNo";
    BEGIN_STRING = 8, "BeginString";
    BODY_LENGTH = 9, "BodyLength";
    CHECK_SUM = 10, "CheckSum";
    CL_ORD_ID = 11, "ClOrdID";
    COMMISSION = 12, "Commission";
    COMM_TYPE = 13, "CommType";
    CUM_QTY = 14, "CumQty";
    CURRENCY = 15, "Currency";
    END_SEQ_NO = 16, "EndSeqNo";
    EXEC_ID = 17, "ExecID";
    EXEC_INST = 18, "ExecInst";
    EXEC_REF_ID = 19, "ExecRefID";
    EXEC_TRANS_TYPE = 20, "ExecTransType";
    HANDL_INST = 21, "HandlInst";
    SECURITY_ID_SOURCE = 22, "SecurityIDSource";
    LAST_PX = 31, "LastPx";
    LAST_QTY = 32, "LastQty";
    MSG_SEQ_NUM = 34, "MsgSeqNum";
    MSG_TYPE = 35, "MsgType";
    NEW_SEQ_NO = 36, "NewSeqNo";
    ORDER_ID = 37, "OrderID";
    ORDER_QTY = 38, "OrderQty";
    ORD_STATUS = 39, "OrdStatus";
    ORD_TYPE = 40, "OrdType";
    ORIG_CL_ORD_ID = 41, "OrigClOrdID";
    POSS_DUP_FLAG = 43, "PossDupFlag";
    PRICE = 44, "Price";
    REF_SEQ_NUM = 45, "RefSeqNum";
    SECURITY_ID = 48, "SecurityID";
    SENDER_COMP_ID = 49, "SenderCompID";
    SENDER_SUB_ID = 50, "SenderSubID";
    SENDING_TIME = 52, "SendingTime";
    SIDE = 54, "Side";
    SYMBOL = 55, "Symbol";
    TARGET_COMP_ID = 56, "TargetCompID";
    TARGET_SUB_ID = 57, "TargetSubID";
    TEXT = 58, "Text";
    TIME_IN_FORCE = 59, "TimeInForce";
    TRANSACT_TIME = 60, "TransactTime";
    SIGNATURE = 89, "Signature";
    SECURE_DATA_LEN = 90, "SecureDataLen";
    SECURE_DATA = 91, "SecureData";
    SIGNATURE_LENGTH = 93, "SignatureLength";
    RAW_DATA_LENGTH = 95, "RawDataLength";
    RAW_DATA = 96, "RawData";
    POSS_RESEND = 97, "PossResend";
    ENCRYPT_METHOD = 98, "EncryptMethod";
    STOP_PX = 99, "StopPx";
    EX_DESTINATION = 100, "ExDestination";
    CXL_REJ_REASON = 102, "CxlRejReason";
    ORD_REJ_REASON = 103, "OrdRejReason";
    HEART_BT_INT = 108, "HeartBtInt";
    TEST_REQ_ID = 112, "TestReqID";
    ON_BEHALF_OF_COMP_ID = 115, "OnBehalfOfCompID";
    ON_BEHALF_OF_SUB_ID = 116, "OnBehalfOfSubID";
    ORIG_SENDING_TIME = 122, "OrigSendingTime";
    GAP_FILL_FLAG = 123, "GapFillFlag";
    EXPIRE_TIME = 126, "ExpireTime";
    DELIVER_TO_COMP_ID = 128, "DeliverToCompID";
    DELIVER_TO_SUB_ID = 129, "DeliverToSubID";
    RESET_SEQ_NUM_FLAG = 141, "ResetSeqNumFlag";
    SENDER_LOCATION_ID = 142, "SenderLocationID";
    TARGET_LOCATION_ID = 143, "TargetLocationID";
    ON_BEHALF_OF_LOCATION_ID = 144, "OnBehalfOfLocationID";
    DELIVER_TO_LOCATION_ID = 145, "DeliverToLocationID";
    EXEC_TYPE = 150, "ExecType";
    LEAVES_QTY = 151, "LeavesQty";
    SECURITY_TYPE = 167, "SecurityType";
    SECURITY_EXCHANGE = 207, "SecurityExchange";
    XML_DATA_LEN = 212, "XmlDataLen";
    XML_DATA = 213, "XmlData";
    MESSAGE_ENCODING = 347, "MessageEncoding";
    ENCODED_TEXT_LEN = 354, "EncodedTextLen";
    ENCODED_TEXT = 355, "EncodedText";
    LAST_MSG_SEQ_NUM_PROCESSED = 369, "LastMsgSeqNumProcessed";
    REF_TAG_ID = 371, "RefTagID";
    REF_MSG_TYPE = 372, "RefMsgType";
    SESSION_REJECT_REASON = 373, "SessionRejectReason";
    EXEC_RESTATEMENT_REASON = 378, "ExecRestatementReason";
    BUSINESS_REJECT_REF_ID = 379, "BusinessRejectRefID";
    BUSINESS_REJECT_REASON = 380, "BusinessRejectReason";
    MAX_MESSAGE_SIZE = 383, "MaxMessageSize";
    CXL_REJ_RESPONSE_TO = 434, "CxlRejResponseTo";
    TEST_MESSAGE_INDICATOR = 464, "TestMessageIndicator";
    USERNAME = 553, "Username";
    PASSWORD = 554, "Password";
    MASS_STATUS_REQ_ID = 584, "MassStatusReqID";
    MASS_STATUS_REQ_TYPE = 585, "MassStatusReqType";
    NEXT_EXPECTED_MSG_SEQ_NUM = 789, "NextExpectedMsgSeqNum";
    ORD_STATUS_REQ_ID = 790, "OrdStatusReqID";
    LAST_LIQUIDITY_IND = 851, "LastLiquidityInd";
    NEW_PASSWORD = 925, "NewPassword";
    APPL_VER_ID = 1128, "ApplVerID";
    DEFAULT_APPL_VER_ID = 1137, "DefaultApplVerID";
    APPL_EXT_ID = 1156, "ApplExtID";
    DEFAULT_APPL_EXT_ID = 1407, "DefaultApplExtID";
    SESSION_STATUS = 1409, "SessionStatus";
}
