//! The soft TM-SRQ: the executable description of a NIC that matches.
